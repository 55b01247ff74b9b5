/** Inbox and outbox for programs that start no daemon: how rows show, and how they are replayed. */
export { replayMessage, replayReply, unknownMessage, unknownReply } from './http/routes/deliveries-replay.ts'
export { INBOX_STATES, OUTBOX_STATES } from './http/routes/deliveries-schema.ts'
export { shownInboxEntry, shownInboxRow, shownOutboxEntry, shownOutboxRow, utf8Text } from './http/routes/deliveries-shown.ts'
