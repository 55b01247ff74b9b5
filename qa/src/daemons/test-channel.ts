/** A channel for tests that has every member of a webhook and no platform. */
import { AppError, type Channel, defineFeature, type Feature, hmacSha256, type Outbound, secretText, verifyHmac } from '@sluice/sdk'
import * as v from 'valibot'

const section = {
  path: 'channels_config.testchat',
  schema: v.object({
    webhook_secret: v.optional(secretText()),
    verify_token: v.string(),
    allowed_users: v.optional(v.array(v.string()), []),
  }),
}

const eventSchema = v.object({ kind: v.string(), id: v.string(), from: v.string(), room: v.string(), text: v.string() })

export const TEST_CHAT =
  '[channels_config.testchat]\nverify_token = "let me in"\nwebhook_secret = "test-chat-secret"\nallowed_users = ["alice"]\n'

export interface TestChannelOptions {
  /** Called for each reply; default: the reply is sent. */
  readonly send?: (message: Outbound) => Promise<void>
  /** The channel does not state the query of its platform's handshake. */
  readonly silent?: boolean
  /** Only the platform can sign a request. */
  readonly foreign?: boolean
  /** A request carries no message; it makes the channel fetch messages. */
  readonly fetched?: boolean
  /** Some messages come over a connection, too. */
  readonly listens?: boolean
  /** Replies are sent to rooms. */
  readonly rooms?: boolean
  /** The text that answers an accepted request. Default: that of the daemon. */
  readonly answers?: string
  readonly registered?: string
  readonly missingConfig?: string
}

export const testChannel = ({
  send = async () => {},
  silent = false,
  foreign = false,
  fetched = false,
  listens = fetched,
  rooms = false,
  answers,
  registered,
  missingConfig,
}: TestChannelOptions = {}): Feature =>
  defineFeature({
    id: 'x-testchat',
    section,
    build(_host, { webhook_secret: secret, verify_token, allowed_users }) {
      const refused = () => new AppError('unauthorized', 'Invalid signature', { cause: 'x-signature is wrong' })
      const channel: Channel = {
        name: 'testchat',
        ...(missingConfig && { missingConfig }),
        allow: allowed_users,
        limits: { text: 1000, unit: 'utf16' },
        webhook: {
          path: '/testchat',
          ...(secret ? {} : { unsigned: 'webhook_secret' }),
          ...(registered && { registered }),
          handshake(url) {
            if (url.searchParams.get('token') !== verify_token) return new Response('Forbidden', { status: 403 })
            return new Response(url.searchParams.get('challenge'))
          },
          ...(silent ? {} : { handshakeQuery: (challenge: string) => ({ token: verify_token, challenge }) }),
          verify({ headers, body }) {
            if (!secret) return { by: 'nothing: webhook_secret is not set' }
            if (foreign || !verifyHmac(secret.reveal(), [body], headers['x-signature'] ?? '')) throw refused()
            return { by: 'x-signature' }
          },
          parse({ body }) {
            const { kind, id, from, room, text } = v.parse(eventSchema, JSON.parse(Buffer.from(body).toString()))
            return kind === 'message' && !fetched ? [{ id: `wire:${id}`, account: 'bot', sender: from, to: { to: room }, text }] : []
          },
          ...(answers !== undefined && { answer: () => new Response(answers) }),
          sample({ sender, to, text, id, ignored }) {
            const room = (rooms ? to : undefined) ?? 'room'
            const body = JSON.stringify({ kind: ignored ? 'read' : 'message', id, from: sender, room, text })
            const proof = secret && !foreign ? { 'X-Signature': hmacSha256(secret.reveal(), body).toString('hex') } : {}
            const known = {
              ...(foreign && { unverifiable: true as const }),
              ...(rooms && to === undefined && { unanswerable: true as const }),
            }
            return { headers: { 'content-type': 'application/json', ...proof }, body, ...known }
          },
        },
        ...(listens && { listen: async () => {} }),
        async send(_to, message) {
          await send(message)
          return { id: `sent:${message.clientId}` }
        },
      }
      return { channels: [channel] }
    },
  })
