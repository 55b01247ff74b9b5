/** The outbox, as its commands see it. */

import { OUTBOX_STATES, replayReply, shownOutboxRow } from '@sluice/delivery'
import type { OutboxRow } from '@sluice/sdk'
import { oneLine } from '@sluice/sdk'
import type { Box } from './box.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX } from './widths.ts'

export const outboxBox: Box<OutboxRow> = {
  name: 'outbox',
  states: OUTBOX_STATES,
  left: ['dead', 'ambiguous'],
  replayed: { one: 'reply is sent again', many: 'replies are sent again' },
  headings: ['number', 'created', 'channel', 'to', 'part', 'state', 'attempts', 'error'],
  atMs: ({ createdAtMs }) => createdAtMs,
  cells: ({ number, createdAtMs, channel, to, part, parts, state, attempts, error }) => [
    String(number),
    new Date(createdAtMs).toISOString(),
    channel,
    oneLine(to.to, NAME_CHARS_MAX),
    `${part}/${parts}`,
    state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
  shown: shownOutboxRow,
  of: ({ outbox }) => outbox,
  replay: ({ outbox }, number) => replayReply(outbox, number),
}
