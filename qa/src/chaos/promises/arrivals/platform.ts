/** The interface of one platform in the play of arrivals: what its people can write. */
import type { PostedRequest } from '@sluice/testkit/crash-kind'
import type { FakeProvider } from '@sluice/testkit/fake-provider'
import type { SectionValues } from '@sluice/testkit/section-values'

/** A message as the platform delivers it. */
export interface Delivered {
  /** The id of the message in the inbox. */
  readonly id: string
  /** Absent when it arrives over a connection of the daemon. */
  readonly request?: PostedRequest
}

export interface Platform {
  readonly name: string
  readonly section: SectionValues
  readonly fake: FakeProvider
  readonly people: readonly [string, ...string[]]
  /** False until the daemon has connected for the first time: messages written before are never delivered. */
  isReady(): boolean
  text(person: string, text: string): Delivered
  /**
   * Writes pictures with a caption, in one message or in as many as the platform makes of them. A platform from which the daemon fetches its
   * messages writes each further one only after `gap`, and adds it to the messages that it has returned.
   */
  album?(person: string, caption: string, pictures: readonly Uint8Array[], gap: () => Promise<void>): readonly Delivered[]
  /** `words` is the text of the quoted message. */
  quote?(person: string, text: string, quoted: Delivered, words: string): Delivered
  forward?(person: string, text: string): Delivered
  edit?(person: string, text: string, message: Delivered): Delivered
}

/** The beginning of a PNG. */
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52])

/** Pictures that differ from all others, so that the judge knows whose they are. */
export const picturesOf = (mark: string, count: number): readonly Uint8Array[] =>
  Array.from({ length: count }, (_, at) => Buffer.concat([PNG, Buffer.from(`${mark} ${at}`)]))
