/**
 * Sends a message to a room: with a secret through the bot API, signed; without one through the chat API, with the app token.
 * Neither API drops repeats.
 */
import { randomBytes } from 'node:crypto'
import { callProvider } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Secret, type Sent, sha256Hex } from '@sluice/sdk'
import { idText, isRoom, type Server, sign } from './server.ts'

const API_PATH = '/ocs/v2.php/apps/spreed/api/v1/'

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

async function post(server: Server, room: string, message: Outbound, signal: AbortSignal, quoted?: number): Promise<Sent> {
  // JSON and the signature would encode half of a surrogate pair differently.
  const body = message.text.toWellFormed()
  const referenceId = sha256Hex(message.clientId)
  const { path, headers } = server.secret ? botRequest(server.secret, room, body) : userRequest(server.appToken, room)
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

/** The signature covers the text of the message, not the JSON around it. */
function botRequest(secret: Secret, room: string, body: string) {
  const random = randomBytes(32).toString('hex')
  return {
    path: `bot/${room}/message`,
    headers: { 'X-Nextcloud-Talk-Bot-Random': random, 'X-Nextcloud-Talk-Bot-Signature': sign(secret.reveal().trim(), random, body) },
  }
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
