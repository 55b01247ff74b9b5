/** A reference request of a platform and the required outcome. */
import type { FakeProvider } from './fake-provider.ts'
import type { SectionValues } from './section-values.ts'

/** An HTTP request with exactly the given headers, including repeated and empty ones. */
export interface SentRequest {
  readonly path: string
  /** Default: POST. */
  readonly method?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string | Uint8Array
}

/** Requests to send and the answers and turns they must cause. */
export interface Vector<Fake = FakeProvider> {
  readonly id: string
  readonly what: string
  /** The daemon's time in seconds since 1970; default: `NOW_SECS`. */
  readonly nowSecs?: number
  /** Changed keys of the channel's section. */
  readonly section?: SectionValues
  requests(fake: Fake): readonly SentRequest[]
  /** Sends all requests at once. */
  readonly atOnce?: true
  /** The status of each answer, or the status and a text that its body must contain. */
  readonly answers: readonly (number | readonly [status: number, text: string])[]
  /** The turns that must run; default: none. */
  readonly turns?: readonly Turn[]
}

/** A turn that must run. */
export interface Turn {
  readonly sender: string
  readonly messageId?: string
  readonly text: string
  readonly to?: string
}

/** 2026-01-01T00:00:00Z */
export const NOW_SECS = 1_767_225_600

/** The answer to an accepted request. */
export const OK = [200, '{"status":"ok"}'] as const
/** The answer to a request with a wrong signature. */
export const REFUSED = [401, 'Invalid signature'] as const

/** Returns the header as a list; empty without a value. */
export const header = (name: string, value: string | undefined): [string, string][] => (value === undefined ? [] : [[name, value]])

/** The bytes of a reference body, so that an editor cannot change what is signed. */
export interface ReferenceBody {
  readonly body: string
  readonly bytes: number
  /** The first digits of its SHA-256 in hex. */
  readonly sha256?: string
}
