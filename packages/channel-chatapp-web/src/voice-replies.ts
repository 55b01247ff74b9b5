/** Answers a voice message with one, besides the text, where `[speech]` is enabled. It is made after the text was sent, and never delays it. */
import { BoundedMap, SerialQueue, signalScope } from '@sluice/kit'
import { type Address, errorText, type Host, type Outbound } from '@sluice/sdk'
import { type Sender, sendVoice } from './send.ts'

const WAITING_MAX = 8
/** An address behind the words of a link. */
const ADDRESS = / \(https?:[^\s)]*\)/g
const SPEAK_MS_MAX = 120_000
/** Voice messages whose answer was spoken: a long reply has several parts, of which the first is spoken. */
const SPOKEN_MAX = 500

export class VoiceReplies {
  readonly #host: Host
  readonly #queue = new SerialQueue({ name: 'voice replies', tasksMax: WAITING_MAX })
  readonly #spoken = new BoundedMap<string, true>(SPOKEN_MAX)

  constructor(host: Host) {
    this.#host = host
  }

  /** Speaks the reply to a voice message. A failure is logged: the person has the text. */
  speak(sender: Sender, to: Address, { text, plain = text, clientId, buttons }: Outbound): void {
    const speak = this.#host.service('speak')
    const { replyTo } = to
    if (!speak || to.more?.voice === undefined || replyTo === undefined || text === '' || buttons?.length || this.#spoken.has(replyTo))
      return
    this.#spoken.set(replyTo, true)
    const { log, workspace } = this.#host
    const work = async (): Promise<void> => {
      using limit = signalScope([], SPEAK_MS_MAX)
      const { signal } = limit
      const { bytes, mime, format } = await speak(plain.replace(ADDRESS, ''), { formats: ['ogg', 'wav'], signal, workspace })
      const file = { kind: 'audio', name: `voice.${format}`, mime, source: { bytes } } as const
      await sendVoice(sender, to, file, clientId, signal)
    }
    this.#queue.run(work).catch((error: unknown) => log.warn('reply not spoken', { channel: 'chatapp', reason: errorText(error) }))
  }
}
