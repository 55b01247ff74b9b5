/**
 * Sends a message to a room: with a secret through the bot API, signed; without one through the chat API, with the app token.
 * Neither API drops repeats. A bot also reacts to messages.
 */
import { randomBytes } from 'node:crypto'
import { callProvider } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Inbound, type Outbound, type Secret, type Sent, sha256Hex } from '@sluice/sdk'
import { idText, isRoom, type Server, sign } from './server.ts'

const API_PATH = '/ocs/v2.php/apps/spreed/api/v1/'
const SEEN = '👀'

/** Implements `Channel.send`. Sends the message without its quote if the server rejects the quoted message. */
export async function sendMessage(server: Server, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  if (!isRoom(to.to)) throw new AppError('invalid_request', 'The address is not the token of a room')
  const quoted = messageNumber(to.replyTo)
  if (quoted === undefined) return post(server, to.to, message, signal)
  try {
    return await post(server, to.to, message, signal, quoted)
  } catch (error) {
    // A deleted or expired message cannot be quoted, but the reply is still useful.
    if (error instanceof AppError && error.code === 'invalid_request') return post(server, to.to, message, signal)
    throw error
  }
}

/**
 * Implements `Channel.acknowledge`, for bots. The server shows a repeated reaction once. Source:
 * https://nextcloud-talk.readthedocs.io/en/latest/bots/#reacting-to-a-chat-message
 */
export async function react(server: Server, { to }: Inbound, signal: AbortSignal): Promise<void> {
  const message = messageNumber(to.replyTo)
  if (!server.secret || !isRoom(to.to) || message === undefined) return
  await callProvider({
    fetch: server.fetch,
    provider: 'roomchat',
    url: `${server.baseUrl}${API_PATH}bot/${to.to}/reaction/${message}`,
    method: 'POST',
    headers: { 'OCS-APIRequest': 'true', ...signedHeaders(server.secret, SEEN) },
    body: { reaction: SEEN },
    signal,
    explain,
  })
}

async function post(server: Server, room: string, message: Outbound, signal: AbortSignal, quoted?: number): Promise<Sent> {
  // JSON and the signature would encode half of a surrogate pair differently.
  const body = message.text.toWellFormed()
  const referenceId = sha256Hex(message.clientId)
  const { path, headers } = server.secret
    ? { path: `bot/${room}/message`, headers: signedHeaders(server.secret, body) }
    : userRequest(server.appToken, room)
  const { json } = await callProvider({
    fetch: server.fetch,
    provider: 'roomchat',
    url: server.baseUrl + API_PATH + path,
    method: 'POST',
    headers: { 'OCS-APIRequest': 'true', ...headers },
    body: { message: body, ...(quoted !== undefined && { replyTo: quoted }), referenceId, silent: false },
    signal,
    explain,
  })
  // The bot API returns no id. The server shows the reference id with the message.
  return { id: idText(members(members(members(json).ocs).data).id) || referenceId }
}

/** The signature covers the text of a message or the emoji of a reaction, not the JSON around it. */
function signedHeaders(secret: Secret, signed: string) {
  const random = randomBytes(32).toString('hex')
  return { 'X-Nextcloud-Talk-Bot-Random': random, 'X-Nextcloud-Talk-Bot-Signature': sign(secret.reveal().trim(), random, signed) }
}

const userRequest = (appToken: Secret, room: string) => ({
  path: `chat/${room}?format=json`,
  headers: { Authorization: `Bearer ${appToken.reveal().trim()}` },
})

function messageNumber(id: string | undefined): number | undefined {
  const number = /^[1-9]\d*$/.test(id ?? '') ? Number(id) : undefined
  return Number.isSafeInteger(number) ? number : undefined
}

function explain(json: unknown): string {
  const { meta, data } = members(members(json).ocs)
  return text(members(meta).message) || text(members(data).error) || text(members(json).message)
}
