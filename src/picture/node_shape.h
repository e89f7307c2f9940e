#ifndef PICTURE_NODE_SHAPE_H
#define PICTURE_NODE_SHAPE_H

/* The shape of one step, or of its undo, in a picture: picture.h. */

#include "picture/picture.h"

struct node_shape {
    const struct workflow *workflow;
    uint16_t step;
    bool is_undo;
    const struct picture_step *marks;
    int x, y; /* the middle of its upper edge */
};

bool node_has_undo(const struct workflow_step *ws);
void node_shape_measure(const struct node_shape *n, int *ret_width, int *ret_height);
void node_shape_draw(const struct node_shape *n, struct buf *b);

/* The sign of a mark, around a point; the class of a group that has it. */
void node_mark_draw(enum picture_mark mark, int x, int y, struct buf *b);
const char *node_mark_class(enum picture_mark mark);

#endif
