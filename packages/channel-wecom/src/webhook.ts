/** The webhook `/wecom`: encrypted callbacks of an app. WeCom checks the address by a GET request with an encrypted text. */
import { AppError, equalTexts, type Inbound, isFresh, type Raw, type Sample, type SampleRequest, type Webhook } from '@sluice/sdk/webhook'
import { type AppParseOptions, parseApp } from './parse-app.ts'
import { open, type SealKeys, seal, signatureOf } from './seal.ts'
import { elementsOf, xmlOf } from './xml.ts'

export interface WebhookOptions extends AppParseOptions, SealKeys {
  /** The time of the check of the address; by default that of the system. */
  nowMs?(): number
  /** Resolves to a message with the name of its sender. */
  naming?(message: Inbound): Promise<Inbound>
}

const WINDOW_SECS = 300
/** The content of the check of the address: a number. A message is XML, which must not be decrypted for an attacker who has captured it. */
const CHALLENGE = /^[\w-]{1,64}$/
const BODY_BYTES_MAX = 262_144
const utf8 = new TextDecoder('utf-8', { fatal: true })

export function createWebhook(options: WebhookOptions): Webhook {
  const nowMs = (): number => options.nowMs?.() ?? Date.now()
  return {
    path: '/wecom',
    bodyBytesMax: BODY_BYTES_MAX,
    handshake(url) {
      const encrypted = url.searchParams.get('echostr')
      if (!encrypted) return new Response('Bad Request', { status: 400 })
      try {
        const { message, atSecs } = verified(options, url, encrypted)
        if (isFresh(atSecs, nowMs(), WINDOW_SECS) && CHALLENGE.test(message)) return new Response(message)
      } catch {
        // It was not signed by WeCom.
      }
      return new Response('Forbidden', { status: 403 })
    },
    handshakeQuery: (challenge) => signedQuery(options, seal(options, challenge, options.corpId), nowMs(), 'echostr'),
    verify(raw) {
      openRequest(options, raw)
      return { by: 'msg_signature' }
    },
    parsesBodyAlone: true,
    parse(raw) {
      const messages = parseApp(messageIn(options, raw), options)
      const { naming } = options
      return naming ? Promise.all(messages.map((message) => naming(message))) : messages
    },
    // WeCom takes any other text for an answer to the person.
    answer: () => new Response(''),
    sample: (sample) => createSample(sample, options),
  }
}

const refused = (reason: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause: reason })

/** Returns the encrypted message of a request that WeCom signed. Throws `unauthorized`. */
function openRequest(options: WebhookOptions, { url, body, receivedAtMs }: Raw): string {
  const envelope = elementsOf(textOf(body) ?? '')
  if (!envelope?.has('Encrypt')) throw refused('the body has no encrypted text')
  const { message, atSecs } = verified(options, url, envelope.get('Encrypt') ?? '')
  if (!isFresh(atSecs, receivedAtMs, WINDOW_SECS)) throw refused(`timestamp is not within ${WINDOW_SECS} s`)
  // The signature does not cover the rest of the envelope.
  const receiver = envelope.get('ToUserName')
  const agent = envelope.get('AgentID')
  if (receiver !== undefined && receiver !== options.corpId) throw refused('the message is for another organisation')
  if (agent !== undefined && agent !== String(options.agentId)) throw refused('the message is for another app')
  return message
}

/** Verifies and decrypts. Throws `unauthorized`. */
function verified(options: WebhookOptions, url: URL, encrypted: string): { readonly message: string; readonly atSecs: number } {
  const [signature, timestamp, nonce] = ['msg_signature', 'timestamp', 'nonce'].map((name) => {
    const values = url.searchParams.getAll(name)
    if (values.length !== 1 || !values[0]) throw refused(`${name} is missing, or there twice`)
    return values[0]
  })
  if (!signature || !timestamp || !nonce || !/^\d{1,11}$/.test(timestamp)) throw refused('timestamp is no time')
  if (!equalTexts(signature.toLowerCase(), signatureOf(options, timestamp, nonce, encrypted)))
    throw refused('msg_signature does not match the request')
  const opened = openOr(options, encrypted)
  if (opened?.receiver !== options.corpId) throw refused('the text is not encrypted with callback_aes_key for this organisation')
  return { message: opened.message, atSecs: Number(timestamp) }
}

function openOr(keys: SealKeys, encrypted: string): ReturnType<typeof open> | undefined {
  try {
    return open(keys, encrypted)
  } catch {
    return undefined
  }
}

/** Returns the elements of the decrypted message. Throws `invalid_request`. */
function messageIn(options: WebhookOptions, { body }: Raw): ReadonlyMap<string, string> {
  const opened = openOr(options, elementsOf(textOf(body) ?? '')?.get('Encrypt') ?? '')
  const elements = opened && elementsOf(opened.message)
  if (!elements) throw new AppError('invalid_request', 'Invalid XML payload')
  return elements
}

function textOf(body: Uint8Array): string | undefined {
  try {
    return utf8.decode(body)
  } catch {
    return undefined
  }
}

function signedQuery(keys: SealKeys, encrypted: string, atMs: number, name?: string): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(atMs / 1000))
  const nonce = process.getBuiltinModule('node:crypto').randomBytes(8).toString('hex')
  return {
    msg_signature: signatureOf(keys, timestamp, nonce, encrypted),
    timestamp,
    nonce,
    ...(name !== undefined && { [name]: encrypted }),
  }
}

function createSample({ sender, to = `user:${sender}`, text, id, atMs, ignored }: Sample, options: WebhookOptions): SampleRequest {
  if (to !== `user:${sender}`)
    throw new AppError('invalid_request', 'An app of wecom gets messages only of people, who are answered directly')
  const { corpId, agentId } = options
  const head = { ToUserName: corpId, FromUserName: sender, CreateTime: Math.floor(atMs / 1000) }
  const message = ignored
    ? { ...head, MsgType: 'event', Event: 'enter_agent', EventKey: '', AgentID: agentId }
    : { ...head, MsgType: 'text', Content: text, MsgId: id, AgentID: agentId }
  const encrypted = seal(options, xmlOf(message), corpId)
  return {
    headers: { 'content-type': 'text/xml' },
    query: signedQuery(options, encrypted, atMs),
    body: xmlOf({ ToUserName: corpId, Encrypt: encrypted, AgentID: String(agentId) }),
  }
}
