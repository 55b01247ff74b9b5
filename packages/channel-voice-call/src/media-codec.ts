/** The JSON messages of media streams: the three providers differ in a few names. */
import { parsedOrUndefined, textAt } from '@sluice/kit/foreign-json'
import type { StreamCodec, StreamMessage } from './telephony.ts'

/** The names of one provider. */
export interface MediaNames {
  /** The paths of the id of the call and of the stream in the message `start`. */
  readonly start: readonly [call: string, stream: string]
  audio(stream: string, payload: string): object
  mark(stream: string, name: string): object
  /** The event that reports that a mark was played, and the path of its name. */
  readonly played: { readonly event: string; readonly name: string }
  clear(stream: string): object
}

export const mediaCodec = ({ start, audio, mark, played, clear }: MediaNames): StreamCodec => ({
  read(text) {
    const message = parsedOrUndefined(text)
    switch (textAt(message, 'event')) {
      case 'start':
        return { kind: 'start', call: textAt(message, start[0]), stream: textAt(message, start[1]) }
      case 'media':
        return heard(message)
      case played.event:
        return { kind: 'played', mark: textAt(message, played.name) }
      case 'stop':
        return { kind: 'stop' }
      default:
        return undefined
    }
  },
  audio: (stream, bytes) => JSON.stringify(audio(stream, Buffer.from(bytes).toString('base64'))),
  mark: (stream, name) => JSON.stringify(mark(stream, name)),
  clear: (stream) => JSON.stringify(clear(stream)),
})

/** The audio of the person; a stream of both tracks also has the audio that we sent. */
function heard(message: unknown): StreamMessage | undefined {
  const track = textAt(message, 'media.track')
  if (track !== '' && !track.startsWith('inbound')) return undefined
  return { kind: 'audio', bytes: Buffer.from(textAt(message, 'media.payload'), 'base64') }
}
