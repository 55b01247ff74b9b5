/** Direct messages to a linked device, and messages in a group. The server keeps what no device has confirmed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { BOT_NUMBER, GROUP } from './fake.ts'
import { connect } from './section.ts'

const NUMBERS = ['15550200001', '15550200002', '15550200003', '15550200004'] as const
const idOf = (message: string): string => message.slice(message.indexOf('/') + 1)
const numberOf = (sender: string): string => sender.replace('+', '')
const BOT = `@${BOT_NUMBER}`

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  const said = (sender: string, id: string): string => `+${numberOf(sender)}/${id}`
  return {
    fake,
    section,
    senders: [`+${NUMBERS[0]}`, ...NUMBERS.slice(1).map((number) => `+${number}`)],
    isPulled: true,
    isPrivate: true,
    dropsRepeats: true,
    isReady: () => fake.logins > 0,
    write: ({ sender, text }) => said(sender, fake.say({ text, from: numberOf(sender) })),
    mention: ({ sender, text }) => {
      const contextInfo = { mentionedJid: [`${BOT_NUMBER}@s.whatsapp.net`] }
      const message = { extendedTextMessage: { text: `${BOT} ${text}`, contextInfo } }
      return { id: said(sender, fake.say({ message, from: numberOf(sender), group: GROUP })) }
    },
    edit: ({ id }, { sender, text }) => ({ id: said(sender, fake.edit(idOf(id), { text, from: numberOf(sender) })) }),
    remove: ({ id }, { sender }) => ({ id: said(sender, fake.remove(idOf(id), { from: numberOf(sender) })) }),
    files: () =>
      fake.sent.flatMap(({ message: { documentMessage, imageMessage, audioMessage, videoMessage } }) => {
        const file = documentMessage ?? imageMessage ?? audioMessage ?? videoMessage
        return file ? [{ name: documentMessage?.fileName ?? 'file', size: Number(file.fileLength ?? 0) }] : []
      }),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
