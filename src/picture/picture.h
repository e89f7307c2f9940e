#ifndef PICTURE_PICTURE_H
#define PICTURE_PICTURE_H

/*
 * A picture of workflows as SVG: the steps in layers by their order, and beside them a second lane
 * with their undos, from the last one back to the first, and above that the steps of on_undo. Each
 * step and each undo may have a mark and lines of text, so that the picture shows what tests or
 * simulated runs reached.
 *
 *     CLEANUP(picture_fini) struct picture p = {0};
 *     picture_add(&p, &graph);           one workflow below the other
 *     picture_write(&p, SLICE("order"), &b);
 *
 * The document stands alone and may also be put into HTML as it is: no script, nothing is loaded,
 * all text is escaped, colours fit a light and a dark scheme. Pure.
 */

#include "base/buf.h"
#include "core/workflow.h"

/* Shown by shape and by colour. */
enum picture_mark {
    PICTURE_PLAIN,   /* nothing is said of it */
    PICTURE_REACHED, /* all of it was reached */
    PICTURE_PARTLY,
    PICTURE_MISSED, /* none of it was */
};

struct picture_step {
    enum picture_mark mark, undo_mark; /* undo_mark: of a step that has an undo */
    struct slice lines;                /* below its name, separated by '\n'; or NONE */
    struct slice about;                /* shown for the mouse and to screen readers; or NONE */
};

struct picture_graph {
    const struct workflow *workflow;  /* as a definition has it: with its templates */
    const struct picture_step *steps; /* one for each step; NULL: no marks */
    struct slice note;                /* beside the name of the workflow; or NONE */
};

/* What the marks mean, in the order of enum picture_mark, without the plain one. */
struct picture_legend {
    const char *reached, *partly, *missed;
    const char *borders; /* a sentence for screen readers */
};

/* A zeroed one is empty. */
struct picture {
    const struct picture_legend *legend; /* NULL: that of what was reached */
    struct buf body;
    int width, height;
    bool has_marks;
};

void picture_add(struct picture *p, const struct picture_graph *g);
/* The whole document: one element svg, without a declaration before it. */
void picture_write(const struct picture *p, struct slice title, struct buf *b);
void picture_fini(struct picture *p);

#endif
