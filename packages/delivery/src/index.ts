/** Durable delivery: intake of messages, the inbox and outbox workers, media and drafts. */

export { type Clients, createClients } from './clients.ts'
export type { DeliveryQueues } from './deliveries.ts'
export { type Deliveries, startDeliveries } from './deliveries.ts'
export type { DeliveryApprovals, DeliveryFeatures, DeliveryOptions } from './delivery-options.ts'
export { type QueuedReply, waitingReplies } from './delivery-queue.ts'
export type { AdmissionOptions } from './inbox/admit-message.ts'
export { isAdmitted, isNamed } from './inbox/allowed-senders.ts'
export { commandIn } from './inbox/commands.ts'
export type { Received, Reception } from './inbox/intake.ts'
export { beginConversation } from './inbox/new-conversation.ts'
export { newsOfRun } from './inbox/news-of-run.ts'
export { Overheard, overheardSessions } from './inbox/overheard.ts'
export { withMessage } from './inbox/read-message.ts'
export { judgeInRoom, type Room, type RoomDefaults, Rooms, type RoomVerdict, respondsTo } from './inbox/rooms.ts'
export { sessionsOfSender } from './inbox/sessions.ts'
export { standingOfSender } from './inbox/standing-of-sender.ts'
export { type IngressWatch, watchIngress } from './observe.ts'
export { healthOf } from './outbox/channel-health.ts'
export { retryDelayMs } from './outbox/retry-delay.ts'
export { codeIn } from './people/codes.ts'
export {
  isConfirmed,
  type LinkedAccount,
  type LinkedPerson,
  linkNotices,
  People,
  type PeopleOptions,
  shownAccount,
  toldOfLink,
} from './people/people.ts'
export { tellOfChanges } from './people/tell-changes.ts'
