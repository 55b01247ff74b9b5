/** Approvals that wait for an answer or for their gate, page by page: there may be thousands, and nobody needs all at once. */
import { setImmediate } from 'node:timers/promises'
import type { Approval, ApprovalKey, ApprovalStore } from '@sluice/sdk'

const PAGE = 100

/** Oldest first; `decided`: only those that wait for their gate. Others have their turn between two pages. */
export async function* unsettled(
  store: Pick<ApprovalStore, 'unsettled'>,
  { decided }: { readonly decided?: true } = {},
): AsyncGenerator<Approval> {
  for (let after: ApprovalKey | null = null; ; ) {
    const page: readonly Approval[] = await store.unsettled({ after, limit: PAGE, ...(decided && { decided }) })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last
    await setImmediate()
  }
}
