/** The collaborators of the parts that process the messages of the inbox. */
import type { Channel, Inbound, OwnedStore, Waiting } from '@sluice/sdk'
import type { DeliveryOptions } from '../delivery-options.ts'
import type { QueuedReply } from '../delivery-queue.ts'
import type { Overheard } from './overheard.ts'
import type { Rooms } from './rooms.ts'

export interface InboxWorkerOptions extends DeliveryOptions {
  readonly rooms: Pick<Rooms, 'of'>
  readonly overheard: Pick<Overheard, 'before' | 'take' | 'drop' | 'end'>
  /** Carries out the change of a message that was overheard. Resolves to whether it was. */
  changesOverheard(channel: Channel, report: Inbound, receivedAtMs: number): Promise<boolean>
  /** Returns when this process took up the shards of these stores. */
  takenAtMs(owned: OwnedStore): number
  /** Called for each message that needs no more work. */
  onDone(row: Waiting): void
  /** Called when a message that had ended waits again in the store. */
  onDue(): void
  /** Called with replies to send, once they are durable. */
  onReplies(replies: readonly QueuedReply[]): void
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}
