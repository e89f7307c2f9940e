#ifndef AGENTS_CHECK_PLAYS_H
#define AGENTS_CHECK_PLAYS_H

/* The functions of all scenarios; scenarios.c describes them. */

#include "agents/check/stage.h"

/* play_calls.c: calls and answers */
void play_completes(struct stage *s);
void play_unknown_members(struct stage *s);
void play_pieces(struct stage *s);
void play_clocks(struct stage *s);
void play_parked(struct stage *s);
void play_idle(struct stage *s);
void play_repeat(struct stage *s);
void play_no_such_action(struct stage *s);
void play_stop(struct stage *s);

/* play_results.c: results until they are acknowledged */
void play_result_cut(struct stage *s);
void play_result_503(struct stage *s);
void play_result_500(struct stage *s);
void play_result_garbage(struct stage *s);
void play_result_truncated(struct stage *s);
void play_no_outcome(struct stage *s);
void play_late(struct stage *s);
void play_unknown_outcome(struct stage *s);
void play_unreadable(struct stage *s);
void play_retry_after(struct stage *s);
void play_retry_after_429(struct stage *s);
void play_backoff(struct stage *s);

/* play_times.c: deadlines */
void play_deadline_passed(struct stage *s);
void play_deadline_sent(struct stage *s);
void play_deadline_waited(struct stage *s);
void play_deadline_slow(struct stage *s);
void play_deadline_begun(struct stage *s);

/* play_effects.c: each effect once */
void play_same_key(struct stage *s);
void play_undo(struct stage *s);
void play_record_killed(struct stage *s);
void play_undo_killed(struct stage *s);
void play_undo_first(struct stage *s);
void play_forward_after_undo(struct stage *s);
void play_count_once(struct stage *s);
void play_count_steps(struct stage *s);
void play_count_anew(struct stage *s);
void play_count_undo(struct stage *s);
void play_many(struct stage *s);

/* play_moments.c: kills and undos at many moments of a request, judged by a count of effects */
void play_effect_killed(struct stage *s);
void play_undo_races(struct stage *s);
void play_undo_at_work(struct stage *s);

/* play_holding.c: what calls report about requests that the agent has shown */
void play_holding_answered(struct stage *s);
void play_holding_at_work(struct stage *s);

/* play_life.c: kills, exits, an unavailable server */
void play_killed(struct stage *s);
void play_sigterm(struct stage *s);
void play_server_restart(struct stage *s);
void play_refused(struct stage *s);

/* play_known.c: agents with the known actions */
void play_echo(struct stage *s);
void play_fail(struct stage *s);
void play_tries(struct stage *s);
void play_resume(struct stage *s);
void play_elsewhere(struct stage *s);
void play_places(struct stage *s);

/* play_beats.c */
void play_beats(struct stage *s);
void play_beats_lost(struct stage *s);
void play_beat_stop(struct stage *s);
void play_beat_deadline(struct stage *s);
void play_beat_acknowledged(struct stage *s);
void play_repeat_in_work(struct stage *s);

/* play_installation.c */
void play_another_installation(struct stage *s);

/* play_nodes.c */
void play_nodes_found(struct stage *s);
void play_nodes_holding(struct stage *s);
void play_nodes_same(struct stage *s);
void play_nodes_gone(struct stage *s);

#endif
