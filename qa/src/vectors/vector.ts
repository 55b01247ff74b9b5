/** What a reference request of a provider is, and what has to come of it. */
import type { ChannelSections } from '../daemons/channel-daemon.ts'
import type { FakeProviders } from '../daemons/fake-providers.ts'
import type { SentRequest } from '../daemons/send-request.ts'

export interface Vector {
  readonly id: string
  readonly what: string
  /** Default: `NOW_SECS`. */
  readonly nowSecs?: number
  /** Keys in place of the usual ones. */
  readonly channels?: ChannelSections
  requests(fakes: FakeProviders): readonly SentRequest[]
  /** True: all of them at once. */
  readonly atOnce?: true
  /** Of each request; a text has to be in the body. */
  readonly answers: readonly (number | readonly [status: number, text: string])[]
  /** What runs a turn, and nothing else; nothing by default. */
  readonly turns?: readonly Turn[]
}

export interface Turn {
  readonly sender: string
  readonly messageId?: string
  readonly text: string
  readonly to?: string
}

/** 2026-01-01T00:00:00Z */
export const NOW_SECS = 1_767_225_600

export const OK = [200, '{"status":"ok"}'] as const
export const REFUSED = [401, 'Invalid signature'] as const

/** No header without a value. */
export const header = (name: string, value: string | undefined): [string, string][] => (value === undefined ? [] : [[name, value]])
