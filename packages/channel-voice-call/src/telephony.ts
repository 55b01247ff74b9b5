/** The common parts of the telephony providers: the events of calls, the instructions that answer them, and their media streams. */
import { normaliseE164, type Raw, type Verified } from '@sluice/sdk/webhook'

/** The two ends of a call. */
export interface Parties {
  /** The provider's id of the call. */
  readonly call: string
  /** The number of the person, as the provider writes it. */
  readonly remote: string
  /** Our number. */
  readonly local: string
  readonly direction: 'inbound' | 'outbound'
}

/**
 * Returns a telephone number in E.164. Any other name of a caller, such as `anonymous` or a SIP address, stays a name: the digits in
 * `sip:15550001111@example.com` are chosen by that caller, and must match no number of an allowlist.
 */
export function callerOf(text: string): string {
  const caller = text.trim()
  return /^\+?[\d ().-]+$/.test(caller) ? normaliseE164(caller) : caller.toLowerCase()
}

/** The event that a verified request of the provider reports. */
export type CallEvent =
  /** A call rings, and the provider waits for a decision, but not yet for instructions. */
  | (Parties & { readonly kind: 'ringing' })
  /** A call begins, and the provider waits for instructions. `token` is the one of the `Dial` that placed it. */
  | (Parties & { readonly kind: 'started'; readonly token?: string })
  /** The provider recognised speech. `id` is unique, and the same in repeats of the request. */
  | (Parties & { readonly kind: 'heard'; readonly id: string; readonly text: string })
  /** The person has said nothing for a while. `times` counts how often in a row. */
  | (Parties & { readonly kind: 'silent'; readonly times: number })
  /** Nothing is left to do in the call, which goes on. */
  | (Parties & { readonly kind: 'waiting' })
  /** The provider asks for the text that `instruct` left for it. */
  | (Parties & { readonly kind: 'fetching'; readonly token: string })
  | (Parties & { readonly kind: 'ended' })
  | { readonly kind: 'other' }

/** The next act of a call. */
export type Instruction =
  /** Answers a call that rings. */
  | { readonly do: 'accept' }
  /** Speaks the text, if there is one, and then listens. */
  | { readonly do: 'talk'; readonly text?: string; readonly silences: number }
  /** Waits for the agent's reply. */
  | { readonly do: 'wait' }
  /** Connects the audio of the call to this WebSocket, in both directions. */
  | { readonly do: 'stream'; readonly url: string }
  | { readonly do: 'reject'; readonly reason: 'forbidden' | 'busy' }
  /** Speaks the text, if there is one, and ends the call. */
  | { readonly do: 'hangUp'; readonly text?: string }

/** A call to place. */
export interface Dial {
  readonly to: string
  /** Names the call in the requests of the provider, and drops a repeat where the provider can. */
  readonly token: string
  readonly ringSecs: number
  readonly secsMax: number
}

/** A message on the media stream of a call. Audio is 8-bit μ-law at 8,000 samples a second, one channel. */
export type StreamMessage =
  | { readonly kind: 'start'; readonly call: string; readonly stream: string }
  | { readonly kind: 'audio'; readonly bytes: Uint8Array }
  /** Everything up to the mark with this name was played. */
  | { readonly kind: 'played'; readonly mark: string }
  | { readonly kind: 'stop' }

/** The messages of a provider's media stream. */
export interface StreamCodec {
  /** Returns undefined for messages that need no action and for anything malformed. */
  read(text: string): StreamMessage | undefined
  audio(stream: string, bytes: Uint8Array): string
  mark(stream: string, name: string): string
  /** Drops the audio that was sent and not played. */
  clear(stream: string): string
}

/** The values that verify and read the requests of a provider. They need no Sluice runtime. */
export interface RequestOptions {
  /** The public URL of this daemon without a path: the provider signs the URL that it called. */
  readonly baseUrl: string
  readonly authToken: string
  /** The public key of a provider that signs with one, in base64. */
  readonly publicKey?: string
}

export interface VoiceWebhookOptions extends RequestOptions {
  readonly provider: 'twilio' | 'telnyx' | 'plivo'
  /** Our number. */
  readonly from: string
}

/** How a provider proves and writes its requests. Pure functions. */
export interface Requests {
  verify(raw: Raw, options: RequestOptions): Verified
  /** Throws `invalid_request` for a request without a call. */
  event(raw: Raw): CallEvent
}

/** The path of all requests of the provider. */
export const WEBHOOK_PATH = '/voice/inbound'
/** The first part of the path of all media streams. */
export const STREAM_PATH = '/ws/voice'

/** Our URL for a step of a call, with the values that the provider returns. */
export function stepUrl(baseUrl: string, step: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(step).toString()
  return `${baseUrl}${WEBHOOK_PATH}${query && `?${query}`}`
}

/** The URL that the provider called, which it signs. A proxy may have changed the host that this daemon sees. */
export const calledUrl = ({ url }: Raw, baseUrl: string): string => `${baseUrl}${url.pathname}${url.search}`

/** The fields of a form. Bytes that are not UTF-8 become replacement characters. */
export const formOf = (body: Uint8Array): URLSearchParams => new URLSearchParams(new TextDecoder().decode(body))

/** Writes text into XML. Characters that XML cannot contain are left out. */
export const xml = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 forbids these characters.
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** Returns the attributes that have a value, each with a leading blank. */
export const attributes = (values: Readonly<Record<string, string | undefined>>): string =>
  Object.entries(values)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${xml(value)}"`))
    .join('')

export const xmlAnswer = (content: string): Response =>
  new Response(`<?xml version="1.0" encoding="UTF-8"?><Response>${content}</Response>`, { headers: { 'content-type': 'text/xml' } })
