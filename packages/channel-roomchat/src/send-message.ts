/**
 * One message to a room (§2.3): by the bot interface, signed, where there is a secret; else by the chat interface with the
 * app token. Neither drops repeats.
 */
import { randomBytes } from 'node:crypto'
import { callProvider } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Secret, type Sent, sha256Hex } from '@sluice/sdk'
import { idText } from './id-text.ts'
import { isRoom } from './room.ts'
import type { Server } from './server.ts'
import { sign } from './signature.ts'

const API = '/ocs/v2.php/apps/spreed/api/v1/'

export interface Sending {
  readonly fetch: typeof fetch
  readonly to: Address
  readonly message: Outbound
  readonly signal: AbortSignal
}

export async function sendMessage(server: Server, { fetch, to, message, signal }: Sending): Promise<Sent> {
  if (!isRoom(to.to)) throw new AppError('invalid_request', 'roomchat knows no room of such a name')
  // Half a surrogate pair is one thing to JSON and another to the signature.
  const said = message.text.toWellFormed()
  const referenceId = sha256Hex(message.clientId)
  const post = async (quoted?: number): Promise<Sent> => {
    const { path, headers } = server.secret ? asBot(server.secret, to.to, said) : asUser(server.appToken, to.to)
    const { json } = await callProvider({
      fetch,
      provider: 'roomchat',
      url: server.baseUrl + API + path,
      method: 'POST',
      headers: { 'OCS-APIRequest': 'true', ...headers },
      body: { message: said, ...(quoted !== undefined && { replyTo: quoted }), referenceId, silent: false },
      signal,
      explain,
    })
    // The bot interface names no id; the reference finds the message in its room.
    return { id: idText(members(members(members(json).ocs).data).id) || referenceId }
  }
  const quoted = messageNumber(to.replyTo)
  if (quoted === undefined) return post()
  try {
    return await post(quoted)
  } catch (error) {
    // What was deleted or has expired cannot be quoted any more; the answer to it is still worth sending.
    if (error instanceof AppError && error.code === 'invalid_request') return post()
    throw error
  }
}

/** The text alone is signed, not the JSON around it. */
function asBot(secret: Secret, room: string, said: string) {
  const random = randomBytes(32).toString('hex')
  return {
    path: `bot/${room}/message`,
    headers: { 'X-Nextcloud-Talk-Bot-Random': random, 'X-Nextcloud-Talk-Bot-Signature': sign(secret, random, said) },
  }
}

const asUser = (appToken: Secret, room: string) => ({
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
