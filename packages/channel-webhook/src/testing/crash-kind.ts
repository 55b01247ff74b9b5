/** Messages of the generic webhook for the crash suite, which kills the daemon while they arrive. */
import type { CrashKind, PostedRequest } from '@sluice/testkit/crash-kind'
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
    request: ([{ id, sender, text }]) => requestOf({ id, sender, content: text }),
    edit: ({ id }, { mark, sender, text }) => ({ id: mark, request: requestOf({ id: mark, sender, edits: id, content: text }) }),
    remove: ({ id }, { mark, sender }) => ({ id: mark, request: requestOf({ id: mark, sender, deletes: id }) }),
    files: () =>
      fake.sent.flatMap(({ attachments = [] }) =>
        attachments.map(({ name, data }) => ({ name, size: Buffer.from(data, 'base64').length })),
      ),
    delivered: () => fake.sent.map(({ content }) => content),
  }
}

function requestOf(event: { readonly id: string; readonly [member: string]: string }): PostedRequest {
  const body = JSON.stringify(event)
  const headers = { 'content-type': 'application/json', ...signed(body, { id: event.id, atMs: Date.now() }) }
  return { path: '/webhook/channel', headers, body }
}
