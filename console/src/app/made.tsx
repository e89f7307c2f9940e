// The text of a token that was just made. It is shown above all else, signed in or not: rotating one's own token ends the
// session, and the text cannot be had again.
import { signal } from "@preact/signals";
import type { CreatedToken } from "../api/types.ts";
import { Button, Copy, Moment } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";

export const madeToken = signal<CreatedToken | null>(null);

// No key that is hit by chance closes it.
export function MadeToken() {
  const made = madeToken.value;
  const close = () => { madeToken.value = null; };
  if (!made) return null;
  return (
    <Dialog title={<>The text of <span class="dialog-of">{made.name}</span></>} isFirm onClose={close} foot={<Button kind="primary" onClick={close}>I have kept it</Button>}>
      <p class="note warning"><Icon name="warning" /><span>It is shown this once: the server keeps only a hash of it.</span></p>
      <div class="secret"><code>{made.token}</code><Copy text={made.token} label="Copy the token" /></div>
      <p class="muted">{made.expires_at ? <>Valid until <Moment at={made.expires_at} />.</> : "It does not expire."}{made.previous_until && <> The text before is valid until <Moment at={made.previous_until} />.</>}</p>
    </Dialog>
  );
}
