/** Messages of the generic webhook for the crash suite, which kills the daemon while they arrive. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './section.ts'
import { signed } from './signed.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  return {
    fake,
    section,
    senders: ['ada', 'bob', 'cleo', 'dan'],
    isPrivate: true,
    write: ({ mark }) => `m-${mark}`,
    request([{ id, sender, text }]) {
      const body = JSON.stringify({ id, sender, content: text })
      const headers = { 'content-type': 'application/json', ...signed(body, { id, atMs: Date.now() }) }
      return { path: '/webhook/channel', headers, body }
    },
    delivered: () => fake.sent.map(({ content }) => content),
  }
}
