/** The check that a message says how it is addressed to the bot. */
import type { Inbound } from '@sluice/sdk'
import { expect } from 'vitest'

/** A press and a deletion need not say it: they concern a message that said it. */
export function expectAddressed({ id, addressed, pressed, changes }: Inbound, what = id): void {
  if (!pressed && changes?.what !== 'deleted') expect(addressed, `addressed of ${what}`).toBeDefined()
}
