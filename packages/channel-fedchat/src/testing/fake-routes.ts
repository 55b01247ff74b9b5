/** The endpoints of the fake homeserver. Sections refer to https://spec.matrix.org/latest/client-server-api/. */
import { members } from '@sluice/kit/foreign-json'
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'
import { type FakeAccounts, type FakeDevice, type Json, Refused } from './fake-accounts.ts'
import type { FakeRooms } from './fake-rooms.ts'
import { answerSync, readFilter, seqOf, tokenAt } from './fake-sync.ts'

export interface FakeState {
  readonly accounts: FakeAccounts
  readonly rooms: FakeRooms
  readonly media: Map<string, { readonly bytes: Buffer; readonly mime: string }>
  /** The answers to transactions, by device and path. */
  readonly transactions: Map<string, Json>
  readonly typing: { readonly room: string; readonly userId: string; readonly isTyping: boolean }[]
  readonly receipts: { readonly room: string; readonly userId: string; readonly event: string }[]
  readonly serverName: string
  /** Homeservers before version 1.11 of the specification answer the new endpoints of media with 404. */
  readonly hasOldMediaOnly: boolean
  readonly unknownStatus: 400 | 404
  readonly uploadBytesMax: number
  /** The number of the newest event of the whole server. */
  now(): number
  /** Resolves at the next news, or after `ms`. */
  news(ms: number): Promise<void>
  /** Ends the waiting of syncs. */
  announce(): void
}

interface Call {
  readonly request: ProviderRequest
  readonly state: FakeState
  readonly device: FakeDevice
  readonly params: readonly string[]
  readonly body: Json
}

type Handler = (call: Call) => Json | ProviderReply | Promise<Json | ProviderReply>

const LIMIT_MAX = 1000

const routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  ['GET', /^account\/whoami$/, ({ device }) => ({ user_id: device.userId, device_id: device.deviceId, is_guest: false })],
  [
    'POST',
    /^logout$/,
    ({ state, device }) => {
      state.accounts.logOut(device, false)
      return {}
    },
  ],
  ['GET', /^sync$/, sync],
  ['POST', /^user\/([^/]+)\/filter$/, () => ({ filter_id: '0' })],
  ['GET', /^profile\/([^/]+)\/displayname$/, ({ state, params: [userId = ''] }) => ({ displayname: state.accounts.user(userId).name })],
  ['GET', /^profile\/([^/]+)$/, ({ state, params: [userId = ''] }) => ({ displayname: state.accounts.user(userId).name })],
  [
    'GET',
    /^directory\/room\/([^/]+)$/,
    ({ state, params: [alias = ''] }) => {
      const id = state.rooms.aliases.get(alias)
      if (id === undefined) throw new Refused(404, 'M_NOT_FOUND', `Room alias ${alias} not found`)
      return { room_id: id, servers: [state.serverName] }
    },
  ],
  [
    'GET',
    /^joined_rooms$/,
    ({ state: { rooms }, device }) => ({
      joined_rooms: [...rooms.rooms.values()].filter((room) => rooms.membership(room, device.userId) === 'join').map(({ id }) => id),
    }),
  ],
  ['POST', /^(?:join|rooms)\/([^/]+)(?:\/join)?$/, join],
  ['POST', /^rooms\/([^/]+)\/leave$/, leave],
  [
    'POST',
    /^rooms\/([^/]+)\/invite$/,
    ({ state: { rooms }, device, params: [id = ''], body }) => {
      rooms.setMembership(rooms.joined(id, device.userId), String(body.user_id), 'invite', device.userId)
      return {}
    },
  ],
  ['GET', /^rooms\/([^/]+)\/members$/, membersOf],
  [
    'GET',
    /^rooms\/([^/]+)\/joined_members$/,
    ({ state: { rooms, accounts }, device, params: [id = ''] }) => {
      const joined = rooms.members(rooms.joined(id, device.userId), 'join')
      return { joined: Object.fromEntries(joined.map((user) => [user, { display_name: accounts.users.get(user)?.name ?? null }])) }
    },
  ],
  ['GET', /^rooms\/([^/]+)\/messages$/, messages],
  [
    'GET',
    /^rooms\/([^/]+)\/event\/([^/]+)$/,
    ({ state: { rooms }, device, params: [id = '', event = ''] }) => rooms.find(rooms.joined(id, device.userId), event).event,
  ],
  ['GET', /^rooms\/([^/]+)\/state\/([^/]+)(?:\/([^/]*))?$/, stateOf],
  [
    'PUT',
    /^rooms\/([^/]+)\/state\/([^/]+)(?:\/([^/]*))?$/,
    ({ state: { rooms }, device, params: [id = '', type = '', stateKey = ''], body }) => {
      const room = rooms.joined(id, device.userId)
      return { event_id: rooms.add(room, { type, sender: device.userId, content: body, stateKey }).event.event_id }
    },
  ],
  ['PUT', /^rooms\/([^/]+)\/send\/([^/]+)\/([^/]+)$/, once(send)],
  [
    'PUT',
    /^rooms\/([^/]+)\/redact\/([^/]+)\/([^/]+)$/,
    once(({ state: { rooms }, device, params: [id = '', event = ''], body }) => ({
      event_id: rooms.redact(rooms.joined(id, device.userId), device.userId, event, body).event.event_id,
    })),
  ],
  ['PUT', /^rooms\/([^/]+)\/typing\/([^/]+)$/, typing],
  [
    'POST',
    /^rooms\/([^/]+)\/receipt\/([^/]+)\/([^/]+)$/,
    ({ state, device, params: [id = '', , event = ''] }) => {
      state.rooms.find(state.rooms.joined(id, device.userId), event)
      state.receipts.push({ room: id, userId: device.userId, event })
      return {}
    },
  ],
  ['POST', /^rooms\/([^/]+)\/read_markers$/, () => ({})],
  ['POST', /^keys\/upload(?:\/[^/]*)?$/, ({ state: { accounts }, device, body }) => accounts.uploadKeys(device, body)],
  ['POST', /^keys\/query$/, ({ state: { accounts }, device, body }) => accounts.queryKeys(body, device.userId)],
  ['POST', /^keys\/claim$/, ({ state: { accounts }, body }) => accounts.claimKeys(body)],
  ['POST', /^keys\/signatures\/upload$/, ({ state: { accounts }, body }) => accounts.addSignatures(body as never)],
  [
    'POST',
    /^keys\/device_signing\/upload$/,
    ({ state: { accounts }, device, body: { auth, ...keys } }) => {
      const user = accounts.user(device.userId)
      const given = (auth ?? {}) as Json
      if (given.session !== 'uia-1' || given.password !== user.password)
        return { status: 401, body: { session: 'uia-1', flows: [{ stages: ['m.login.password'] }], params: {} } }
      user.crossSigning = keys
      accounts.listChanged(device.userId)
      return {}
    },
  ],
  [
    'PUT',
    /^sendToDevice\/([^/]+)\/([^/]+)$/,
    once(({ state, device, params: [type = ''], body }) => {
      state.accounts.sendToDevice(device.userId, type, body)
      return {}
    }),
  ],
  [
    'GET',
    /^user\/([^/]+)\/account_data\/([^/]+)$/,
    ({ state: { accounts }, device, params: [userId = '', type = ''] }) => {
      if (userId !== device.userId) throw new Refused(403, 'M_FORBIDDEN', 'Cannot get account data for other users.')
      const data = accounts.user(userId).accountData.get(type)
      if (!data) throw new Refused(404, 'M_NOT_FOUND', 'Account data not found')
      return data
    },
  ],
  ['GET', /^room_keys\/version$/, () => Promise.reject(new Refused(404, 'M_NOT_FOUND', 'No backup found'))],
]

/** Answers a request as a homeserver does. */
export async function answer(request: ProviderRequest, state: FakeState): Promise<ProviderReply> {
  try {
    const reply = await route(request, state)
    if (request.method !== 'GET') state.announce()
    return isReply(reply) ? reply : { status: 200, body: reply }
  } catch (error) {
    if (error instanceof Refused) return { status: error.status, body: error.body }
    throw error
  }
}

const isReply = (value: Json | ProviderReply): value is ProviderReply => typeof value.status === 'number'

async function route(request: ProviderRequest, state: FakeState): Promise<Json | ProviderReply> {
  const { method, path, json } = request
  if (path === '/_matrix/client/versions') return { versions: ['v1.6', 'v1.11'], unstable_features: {} }
  const media = /^\/_matrix\/(?:media\/(?:r0|v3)|client\/v1\/media)\/(.+)$/.exec(path)?.[1]
  if (media !== undefined) return mediaReply(request, media, state)
  const rest = /^\/_matrix\/client\/(?:r0|v3|unstable)\/(.+)$/.exec(path)?.[1]
  if (rest === 'login') return logIn(request, state)
  if (rest === undefined) throw unrecognized()
  for (const [ofMethod, pattern, handler] of routes) {
    const found = ofMethod === method ? pattern.exec(rest) : null
    if (!found) continue
    const device = deviceOf(request, state)
    const isJson = method === 'GET' || (typeof json === 'object' && json !== null)
    if (!isJson && request.body.length > 0) throw new Refused(400, 'M_NOT_JSON', 'Content not JSON.')
    const params = found.slice(1).map((part) => decodeURIComponent(part ?? ''))
    return handler({ request, state, device, params, body: (json ?? {}) as Json })
  }
  throw unrecognized()
}

/** Older clients send the token in the query, which the specification has deprecated. */
function deviceOf({ headers, query }: ProviderRequest, { accounts }: FakeState): FakeDevice {
  const inQuery = query.get('access_token')
  return accounts.deviceOf(headers.get('authorization') ?? (inQuery === null ? null : `Bearer ${inQuery}`))
}

const unrecognized = (): Refused => new Refused(404, 'M_UNRECOGNIZED', 'Unrecognized request')

function logIn({ method, json }: ProviderRequest, { accounts, serverName }: FakeState): Json {
  if (method === 'GET') return { flows: [{ type: 'm.login.password' }] }
  const { type, identifier, user, password, device_id: deviceId } = json as Record<string, unknown>
  const named = String((identifier as Json | undefined)?.user ?? user ?? '')
  const userId = named.startsWith('@') ? named : `@${named}:${serverName}`
  const found = accounts.users.get(userId)
  if (type !== 'm.login.password' || found?.password !== password) throw new Refused(403, 'M_FORBIDDEN', 'Invalid username or password')
  const device = accounts.logIn(userId, typeof deviceId === 'string' && deviceId !== '' ? deviceId : undefined)
  return { user_id: userId, access_token: device.token, device_id: device.deviceId, home_server: serverName }
}

/** Section "Transaction identifiers": the answer to a repeated transaction of the device is the first one. */
function once(handler: Handler): Handler {
  return async (call) => {
    const key = `${call.device.userId} ${call.device.deviceId} ${call.request.path}`
    const known = call.state.transactions.get(key)
    if (known) return known
    const result = (await handler(call)) as Json
    call.state.transactions.set(key, result)
    return result
  }
}

async function sync({ request, state, device }: Call): Promise<Json> {
  const { query } = request
  const since = query.get('since') === null ? undefined : seqOf(query.get('since') ?? '')
  const filter = readFilter(query.get('filter'))
  const endsAt = performance.now() + Number(query.get('timeout') ?? 0)
  for (;;) {
    // The token may have become invalid meanwhile.
    deviceOf(request, state)
    const { body, hasNews } = answerSync(state.accounts, state.rooms, { device, since, filter }, state.now())
    const leftMs = endsAt - performance.now()
    if (hasNews || since === undefined || leftMs <= 0) return body
    await state.news(leftMs)
  }
}

function send({ state: { rooms }, device, params: [id = '', type = ''], body }: Call): Json {
  const room = rooms.joined(id, device.userId)
  if (type === 'm.room.encrypted' && typeof body.ciphertext !== 'string') throw new Refused(400, 'M_BAD_JSON', 'ciphertext is missing')
  if (type === 'm.room.message' && typeof body.msgtype !== 'string') throw new Refused(400, 'M_BAD_JSON', 'msgtype is missing')
  // https://spec.matrix.org/latest/client-server-api/#validation-of-mthread-relationships
  const { rel_type: relation, event_id: root } = members(body['m.relates_to'])
  const isRelated = room.timeline.some(({ event }) => event.event_id === root && event.content['m.relates_to'] !== undefined)
  if (relation === 'm.thread' && isRelated) throw new Refused(400, 'M_UNKNOWN', 'Cannot start threads from an event with a relation')
  return { event_id: rooms.add(room, { type, sender: device.userId, content: body }).event.event_id }
}

function join({ state: { rooms }, device, params: [target = ''] }: Call): Json {
  const id = target.startsWith('#') ? rooms.aliases.get(target) : target
  const room = rooms.rooms.get(id ?? '')
  if (!room) throw new Refused(404, 'M_NOT_FOUND', 'Unknown room')
  const membership = rooms.membership(room, device.userId)
  const isPublic = room.state.get('m.room.join_rules|')?.event.content.join_rule === 'public'
  if (membership !== 'join' && membership !== 'invite' && !isPublic)
    throw new Refused(403, 'M_FORBIDDEN', 'You are not invited to this room.')
  if (membership !== 'join') rooms.setMembership(room, device.userId, 'join')
  return { room_id: room.id }
}

function leave({ state: { rooms }, device, params: [id = ''] }: Call): Json {
  const room = rooms.room(id)
  if (rooms.membership(room, device.userId) === 'leave') throw new Refused(403, 'M_FORBIDDEN', 'You are not in the room')
  rooms.setMembership(room, device.userId, 'leave')
  return {}
}

function membersOf({ state: { rooms }, device, params: [id = ''], request }: Call): Json {
  const room = rooms.joined(id, device.userId)
  const only = request.query.get('membership')
  const events = [...room.state.values()].filter(
    ({ event: { type, content } }) => type === 'm.room.member' && (only === null || content.membership === only),
  )
  return { chunk: events.map(({ event }) => event) }
}

function messages({ state: { rooms }, device, params: [id = ''], request: { query } }: Call): Json {
  const room = rooms.joined(id, device.userId)
  const limit = Math.min(Number(query.get('limit') ?? 10), LIMIT_MAX)
  const isBackwards = query.get('dir') === 'b'
  if (!isBackwards && query.get('dir') !== 'f') throw new Refused(400, 'M_MISSING_PARAM', 'dir is missing')
  const from = query.get('from') === null ? (isBackwards ? Number.MAX_SAFE_INTEGER : 0) : seqOf(query.get('from') ?? '')
  const to = query.get('to') === null ? undefined : seqOf(query.get('to') ?? '')
  const inRange = room.timeline.filter(({ seq }) =>
    isBackwards ? seq <= from && (to === undefined || seq > to) : seq > from && (to === undefined || seq <= to),
  )
  const chunk = (isBackwards ? inRange.toReversed() : inRange).slice(0, limit)
  const last = chunk.at(-1)
  const hasMore = inRange.length > chunk.length && last !== undefined
  const senders = new Set(chunk.map(({ event }) => event.sender))
  const isLazy = readFilter(query.get('filter')).lazy_load_members === true
  const writers = [...room.state.values()].filter(
    ({ event: { type, state_key = '' } }) => type === 'm.room.member' && senders.has(state_key),
  )
  return {
    chunk: chunk.map(({ event }) => event),
    ...(isLazy && { state: writers.map(({ event }) => event) }),
    start: tokenAt(from),
    ...(hasMore && { end: tokenAt(isBackwards ? last.seq - 1 : last.seq) }),
  }
}

function stateOf({ state: { rooms }, device, params: [id = '', type = '', key = ''] }: Call): Json {
  const found = rooms.joined(id, device.userId).state.get(`${type}|${key}`)
  if (!found) throw new Refused(404, 'M_NOT_FOUND', 'Event not found.')
  return found.event.content
}

function typing({ state, device, params: [id = '', userId = ''], body }: Call): Json {
  if (userId !== device.userId) throw new Refused(403, 'M_FORBIDDEN', "Cannot set another user's typing state")
  state.rooms.joined(id, userId)
  if (typeof body.typing !== 'boolean') throw new Refused(400, 'M_BAD_JSON', 'typing is missing')
  state.typing.push({ room: id, userId, isTyping: body.typing })
  return {}
}

/** Section "Content repository". */
function mediaReply(request: ProviderRequest, rest: string, state: FakeState): Json | ProviderReply {
  const isNew = request.path.includes('/client/v1/')
  if (isNew && state.hasOldMediaOnly) throw new Refused(state.unknownStatus, 'M_UNRECOGNIZED', 'Unrecognized request')
  if (rest === 'config') {
    deviceOf(request, state)
    return { 'm.upload.size': state.uploadBytesMax }
  }
  if (rest === 'upload' && request.method === 'POST') {
    deviceOf(request, state)
    if (request.body.length > state.uploadBytesMax) throw new Refused(413, 'M_TOO_LARGE', 'Upload request body is too large')
    const id = `media${state.media.size + 1}`
    state.media.set(`${state.serverName}/${id}`, {
      bytes: request.body,
      mime: request.headers.get('content-type') ?? 'application/octet-stream',
    })
    return { content_uri: `mxc://${state.serverName}/${id}` }
  }
  const [, file] = /^download\/([^/]+\/[^/]+)(?:\/[^/]+)?$/.exec(rest) ?? []
  if (file === undefined || request.method !== 'GET') throw unrecognized()
  if (isNew) deviceOf(request, state)
  // Servers freeze the old endpoint: media uploaded since then are only behind the new one.
  if (!isNew && !state.hasOldMediaOnly) throw new Refused(404, 'M_NOT_FOUND', 'Not found')
  const found = state.media.get(decodeURIComponent(file))
  if (!found) throw new Refused(404, 'M_NOT_FOUND', 'Not found')
  return { status: 200, headers: { 'content-type': found.mime }, body: found.bytes }
}
