/** Tells the other accounts of the changes that requests of the API have made to their links. */
import { type Channel, type Clock, type GatewayTexts, gatewayText, type Logger, type NewReply, type Store } from '@sluice/sdk'
import { type QueuedReply, waitingReplies } from '../delivery-queue.ts'
import type { LinkChange } from './link-changes.ts'
import { linkNotices, type People, shownAccount, toldOfLink } from './people.ts'

interface TellOptions {
  readonly people: Pick<People, 'unsettled' | 'settled' | 'personOf'>
  readonly store: Pick<Store, 'outbox'>
  readonly clock: Pick<Clock, 'nowMs'>
  channels(): readonly Channel[]
  texts(): GatewayTexts
  onReplies(replies: readonly QueuedReply[]): void
}

/** A younger change may be that of a request which another node handles. */
const CUT_OFF_MS = 60_000

/** Reports each change that may not have been reported, also one that a failed write or a crash has left. Resolves once the messages are durable. */
export async function tellOfChanges(options: TellOptions, ageMs = 0): Promise<void> {
  const { people, store, onReplies, clock } = options
  for (const change of await people.unsettled()) {
    if (clock.nowMs() - change.atMs < ageMs) continue
    const notices = noticesOf(options, change)
    if (notices.length > 0) onReplies(waitingReplies(notices, await store.outbox.add(notices)))
    await people.settled(change)
  }
}

/** Tells of the changes that were cut off before a start. */
export async function tellOfCutOff(options: TellOptions & { readonly log: Logger }): Promise<void> {
  try {
    await tellOfChanges(options, CUT_OFF_MS)
  } catch (error) {
    options.log.warn('The changes of links that were cut off before this start will be told at the next one.', { error })
  }
}

function noticesOf({ people, clock, channels, texts }: TellOptions, { kind, account, others, own }: LinkChange): NewReply[] {
  const told =
    kind === 'people_unlinked'
      ? [...others.map((to) => ({ to, accounts: [own ?? { account }] })), ...(own ? [{ to: own, accounts: others }] : [])]
      : kind === 'people_linked'
        ? toldOfLink(people.personOf(account) ?? [], account)
        : []
  const key = kind === 'people_unlinked' ? 'unlinked' : 'linked'
  return told.flatMap(({ to, accounts }) => {
    const text = gatewayText(key, texts(), { accounts: accounts.map((one) => shownAccount(one, texts())).join(', ') })
    return linkNotices(channels(), to, text, clock.nowMs())
  })
}
