/* The view that live verbs redraw on a terminal: modes, signals, keys and drawing (the view
 * functions of term.h). Restores the terminal at the end, when the process is stopped, and after
 * a failed assertion. verbs/top.c and verbs/watch.c use it. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "cli/terminal/term.h"

/* ---- the only view ---- */

static struct {
    struct term *term;
    bool is_open, full_screen, entered;
    bool keys; /* standard input is our terminal, and we are in its foreground */
    struct termios before;
    int wake[2];      /* written by signal handlers, watched by the reader of view_fds */
    struct buf shown; /* the lines on the screen */
    int shown_width;  /* the terminal's width when they were drawn */
    bool stale;       /* the screen may differ from `shown` */
    int key, died_of;
    bool gone; /* the terminal hung up, and SIGHUP was ignored (nohup) */
} v = {.wake = {-1, -1}};

static volatile sig_atomic_t resized, stopped, continued, deadly;

static const int deadly_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void put(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(v.term->fd, text, len);
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = v.term->fd, .events = POLLOUT};
            (void)poll(&p, 1, 100);
        } else if (n == 0 || errno != EINTR) {
            v.gone |= n < 0 && errno == EIO;
            return;
        }
    }
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* ---- modes: also called by signal handlers ---- */

static void enter(void)
{
    struct termios raw = v.before;

    v.entered = true;
    if (v.keys) {
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    if (v.full_screen)
        put_text("\x1b[?1049h\x1b[H\x1b[2J");
    put_text("\x1b[?25l");
    v.stale = v.full_screen;
}

static void leave(void)
{
    if (!v.entered)
        return;
    v.entered = false;
    put_text("\x1b[0m\x1b[?25h");
    if (v.full_screen)
        put_text("\x1b[?1049l");
    if (v.keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &v.before);
}

/* ---- signals ---- */

static void on_signal(int number)
{
    int before = errno;

    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopped = 1;
    else if (number == SIGCONT)
        continued = 1;
    else
        deadly = number;
    if (write(v.wake[1], "", 1) < 0)
        errno = 0; /* it is full: the reader wakes up anyway */
    errno = before;
}

/* A failed assertion: abort() continues when this returns. */
static void on_abort(int number)
{
    (void)number;
    leave();
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction sa = {.sa_handler = handler};

    sigemptyset(&sa.sa_mask);
    sa.sa_flags = number == SIGABRT ? (int)SA_RESETHAND : 0;
    (void)sigaction(number, &sa, NULL); /* the signals exist */
}

/* A signal that was ignored before (nohup) stays ignored. */
static void handle_unless_ignored(int number)
{
    struct sigaction was;

    if (sigaction(number, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        handle(number, on_signal);
}

static void handle_all(void)
{
    for (size_t i = 0; i < COUNT_OF(deadly_signals); i++)
        handle_unless_ignored(deadly_signals[i]);
    handle_unless_ignored(SIGTSTP);
    handle(SIGWINCH, on_signal);
    handle(SIGCONT, on_signal);
    handle(SIGABRT, on_abort);
}

static void handle_none(void)
{
    static const int others[] = {SIGWINCH, SIGCONT, SIGABRT, SIGTSTP};
    struct sigaction is;

    for (size_t i = 0; i < COUNT_OF(deadly_signals) + COUNT_OF(others); i++) {
        int number = i < COUNT_OF(others) ? others[i] : deadly_signals[i - COUNT_OF(others)];
        if (sigaction(number, NULL, &is) == 0 && is.sa_handler != SIG_IGN)
            handle(number, SIG_DFL);
    }
}

/* Ctrl-Z: restores the terminal for the shell, and continues afterwards. */
static void stop(void)
{
    leave();
    handle(SIGTSTP, SIG_DFL);
    (void)raise(SIGTSTP);
    handle(SIGTSTP, on_signal);
    enter();
}

/* A terminal that hung up has no keys, but is always readable. */
static enum view_event read_key(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key = 0;
    ssize_t n = read(STDIN_FILENO, &key, 1);

    v.key = key;
    if (n == 1)
        return VIEW_KEY;
    v.gone |= (n < 0 && errno == EIO) || (poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)));
    if (v.gone)
        v.died_of = SIGHUP;
    return v.gone ? VIEW_SIGNAL : VIEW_NOTHING;
}

enum view_event view_next(void)
{
    char bytes[64];

    while (read(v.wake[0], bytes, sizeof bytes) > 0)
        continue;
    if (deadly || v.gone) {
        v.died_of = deadly ? deadly : SIGHUP;
        return VIEW_SIGNAL;
    }
    if (stopped) {
        stopped = 0;
        stop();
        continued = 1;
    }
    if (resized || continued) {
        if (continued && v.entered) /* another program may have used the terminal */
            enter();
        resized = continued = 0;
        term_measure(v.term);
        v.stale = true;
        return VIEW_RESIZE;
    }
    return v.keys ? read_key() : VIEW_NOTHING;
}

int view_key(void)
{
    return v.key;
}

int view_fds(int ret[VIEW_FDS])
{
    ret[0] = v.wake[0];
    ret[1] = STDIN_FILENO;
    return v.keys ? 2 : 1;
}

/* ---- drawing ---- */

/* Removes the first line from *s, with its newline. */
static struct slice take_line(struct slice *s)
{
    const char *end = s->len ? memchr(s->ptr, '\n', s->len) : NULL;
    size_t len = end ? (size_t)(end - s->ptr) + 1 : s->len;
    struct slice line = {s->ptr, len};

    *s = (struct slice){s->ptr + len, s->len - len};
    return line;
}

static struct slice without_end(struct slice line)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\n')
        line.len--;
    return line;
}

/* The first `most` lines. */
static struct slice cut_lines(struct slice lines, int most)
{
    struct slice rest = lines;

    for (int i = 0; i < most && rest.len > 0; i++)
        (void)take_line(&rest);
    return (struct slice){lines.ptr, lines.len - rest.len};
}

/* How many screen rows the shown lines take now: a narrower terminal has wrapped them. */
static int rows_shown(void)
{
    struct slice rest = buf_view(&v.shown);
    int rows = 0;

    while (rest.len > 0) {
        int width = term_width(v.term, without_end(take_line(&rest)));
        rows += width > v.term->width ? (width + v.term->width - 1) / v.term->width : 1;
    }
    return rows;
}

/* To the start of the block. */
static void go_back(struct buf *b)
{
    int rows = rows_shown();

    buf_byte(b, '\r');
    if (v.full_screen)
        buf_str(b, "\x1b[H");
    else if (rows > 0)
        buf_fmt(b, "\x1b[%dA", rows);
    if (v.stale)
        buf_str(b, "\x1b[J");
}

static void draw_lines(struct buf *b, struct slice lines)
{
    struct slice old = v.stale ? SLICE("") : buf_view(&v.shown);

    while (lines.len > 0) {
        struct slice line = take_line(&lines);
        struct slice was = take_line(&old);
        if (!slice_eq(line, was)) {
            buf_slice(b, without_end(line));
            buf_str(b, "\x1b[K");
        }
        /* No newline after the last row of a full screen, because it would scroll. */
        if (!v.full_screen || lines.len > 0)
            buf_str(b, "\r\n");
    }
    if (old.len > 0)
        buf_str(b, v.full_screen ? "\r\n\x1b[J" : "\x1b[J");
}

void view_draw(struct slice lines, bool last)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int most = v.full_screen ? v.term->height : v.term->height - 1;

    ASSERT(v.is_open);
    if (!last)
        lines = cut_lines(lines, most);
    if (!v.stale && slice_eq(lines, buf_view(&v.shown)))
        return;
    go_back(&b);
    draw_lines(&b, lines);
    put(b.ptr, b.len);
    buf_clear(&v.shown);
    buf_slice(&v.shown, lines);
    v.stale = false;
}

/* ---- opening and closing ---- */

static void at_exit(void)
{
    if (v.is_open)
        leave();
}

void view_open(struct term *t, bool full_screen)
{
    static bool registered;

    ASSERT(!v.is_open);
    v.term = t;
    v.full_screen = full_screen;
    v.gone = false;
    v.keys = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp()
             && tcgetattr(STDIN_FILENO, &v.before) == 0;
    resized = stopped = continued = deadly = 0;
    if (pipe2(v.wake, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    if (!registered)
        registered = atexit(at_exit) == 0;
    buf_clear(&v.shown);
    v.is_open = true;
    handle_all();
    enter();
}

void view_close(void)
{
    if (!v.is_open)
        return;
    leave();
    handle_none();
    v.is_open = false;
    buf_fini(&v.shown);
    for (int i = 0; i < 2; i++) {
        (void)close(v.wake[i]);
        v.wake[i] = -1;
    }
}

void view_die(void)
{
    ASSERT(!v.is_open && v.died_of != 0);
    (void)signal(v.died_of, SIG_DFL);
    (void)raise(v.died_of);
    _exit(128 + v.died_of); /* it was blocked */
}
