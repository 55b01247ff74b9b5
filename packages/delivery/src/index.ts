/** Durable delivery: intake of messages, the inbox and outbox workers, media and drafts. */

export type { AdmissionOptions } from './admit-message.ts'
export { healthOf } from './channel-health.ts'
export { type Clients, createClients } from './clients.ts'
export type { DeliveryQueues } from './deliveries.ts'
export { type Deliveries, startDeliveries } from './deliveries.ts'
export type { DeliveryApprovals, DeliveryFeatures, DeliveryOptions } from './delivery-options.ts'
export { type QueuedReply, waitingReplies } from './delivery-queue.ts'
export type { Received, Reception } from './intake.ts'
export { type IngressWatch, watchIngress } from './observe.ts'
export { withMessage } from './read-message.ts'
export { retryDelayMs } from './retry-delay.ts'
export { senderOf, sessionsOfSender } from './sessions.ts'
