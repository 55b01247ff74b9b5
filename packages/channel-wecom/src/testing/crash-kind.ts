/** Messages of wecom to an app: encrypted callbacks, which WeCom repeats until they are answered. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startWecomFake } from './fake.ts'
import { APP } from './seal.ts'

const SENDERS = ['ada', 'bob', 'cleo', 'dan'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startWecomFake()
  let messages = 0
  return {
    fake,
    section: { ...APP, api_url: fake.url, allowed_users: ['*'] },
    senders: SENDERS,
    isPrivate: true,
    write() {
      messages += 1
      return String(1_456_453_720 + messages)
    },
    request([{ sender, text, id }]) {
      const secs = Math.floor(Date.now() / 1000)
      const { path, body } = fake.callback(
        { FromUserName: sender, CreateTime: secs, MsgType: 'text', Content: text, MsgId: Number(id) },
        secs,
      )
      return { path, headers: { 'content-type': 'text/xml' }, body }
    },
    textIn: ({ json }) => ((json ?? {}) as { text?: { content?: string } }).text?.content ?? '',
    delivered: () => fake.sent.flatMap(({ text }) => (text === undefined ? [] : [text])),
  }
}
