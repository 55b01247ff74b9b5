/** Direct messages of signal: signal-cli repeats the messages that it wrote to a connection of a daemon that was killed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { SIGNAL_ACCOUNT, uuidOf } from './fake.ts'
import { connect } from './section.ts'

const SENDERS = ['+15550300001', '+15550300002', '+15550300003', '+15550300004'] as const
const GROUP = 'Z3JvdXAtb2YtdGhlLXRlc3Q='
/** A mention of the bot at the beginning of a text. */
const BOT = { start: 0, length: 1, name: 'Sluice', number: SIGNAL_ACCOUNT, uuid: uuidOf(SIGNAL_ACCOUNT) }
const sentAtMs = (id: string): number => Number(id.split('/')[1])

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect(Date.now)
  return {
    fake,
    section,
    senders: SENDERS,
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.listeners > 0,
    write: ({ sender, text }) => `${uuidOf(sender)}/${fake.say({ from: sender, text })}`,
    mention: ({ sender, text }) => ({
      id: `${uuidOf(sender)}/${fake.say({ from: sender, group: GROUP, text: `\uFFFC ${text}`, data: { mentions: [BOT] } })}`,
    }),
    edit: ({ id }, { sender, text }) => ({ id: `${uuidOf(sender)}/${fake.edit(sentAtMs(id), { from: sender, text })}` }),
    remove: ({ id }, { sender }) => ({
      id: `${uuidOf(sender)}/${fake.say({ from: sender, text: '', data: { message: null, remoteDelete: { timestamp: sentAtMs(id) } } })}`,
    }),
    files: () => fake.sent.flatMap(({ attachments = [] }) => attachments.map(fileIn)),
    delivered: () => fake.sent.map(({ message }) => message),
  }
}

/** A data URL of signal-cli. */
function fileIn(url: string): { readonly name: string; readonly size: number } {
  const [, name = '', data = ''] = /;filename=([^;]*);base64,(.*)$/.exec(url) ?? []
  return { name: decodeURIComponent(name.replaceAll('+', ' ')), size: Buffer.from(data, 'base64').length }
}
