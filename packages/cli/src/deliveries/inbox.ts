/** The inbox, as its commands see it. */

import { INBOX_STATES, replayMessage, shownInboxRow } from '@sluice/delivery'
import type { InboxRow } from '@sluice/sdk'
import { oneLine } from '@sluice/sdk'
import type { Box } from './box.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX } from './widths.ts'

export const inboxBox: Box<InboxRow> = {
  name: 'inbox',
  states: INBOX_STATES,
  left: ['dead'],
  replayed: { one: 'message runs again', many: 'messages run again' },
  headings: ['number', 'received', 'channel', 'sender', 'state', 'attempts', 'error'],
  atMs: ({ receivedAtMs }) => receivedAtMs,
  cells: ({ number, receivedAtMs, channel, sender, state, attempts, error }) => [
    String(number),
    new Date(receivedAtMs).toISOString(),
    channel,
    oneLine(sender, NAME_CHARS_MAX),
    state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
  shown: shownInboxRow,
  of: ({ inbox }) => inbox,
  replay: ({ inbox }, number) => replayMessage(inbox, number),
}
