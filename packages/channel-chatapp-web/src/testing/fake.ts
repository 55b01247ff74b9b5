/**
 * The servers of WhatsApp Web on loopback, with people and their phones. Clients connect with the real handshake and encryption. Source:
 * the stanzas that baileys sends and reads (https://github.com/WhiskeySockets/Baileys, MIT), and https://github.com/tulir/whatsmeow.
 * A message stays with the server until the device has confirmed it. The server refuses what the real one refuses: unknown devices, devices
 * without a signed identity, and first messages of a session without it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import {
  type BinaryNode,
  encodeBigEndian,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  jidNormalizedUser,
  proto,
} from '@whiskeysockets/baileys'
import { type WebSocket, WebSocketServer } from 'ws'
import { loadLibrary } from '../library.ts'
import { Account, CodeLink } from './account.ts'
import { writeLinkedSession } from './linked-session.ts'
import { NoiseServer, ROOT } from './noise.ts'
import { type Bundle, bundleNode, type Encrypted, Person } from './person.ts'

/** The account of the bot. */
export const BOT_NUMBER = '15550001111'
export const BOT_LID = '190550001111'
export const GROUP = '120363000000000001@g.us'
const SERVER = '@s.whatsapp.net'
const RETRIES_MAX = 5
const ID_BYTES = 8

export interface WebFakeOptions {
  readonly nowMs?: () => number
  /** Whether a linked device exists, whose folder is `sessionPath`. Default: true. */
  readonly isLinked?: boolean
}

/** A message that a person writes. */
export interface WebSay {
  readonly text?: string
  /** The number of the person. */
  readonly from?: string
  readonly group?: string
  /** The content, in place of a text. */
  readonly message?: proto.IMessage
  /**
   * How the platform names the sender: by the number (default), by the hidden id with the number next to it, or by the hidden id alone.
   */
  readonly address?: 'number' | 'lid' | 'hidden'
  readonly id?: string
  /** The stanza has no content, as other devices than phones get a message to be viewed once. */
  readonly isViewOnce?: true
  /** Attributes of the stanza. */
  readonly attrs?: Readonly<Record<string, string>>
}

/** A message of the bot as the devices of people have decrypted it, each once. */
export interface WebSent {
  readonly id: string
  /** The address that the bot wrote to. */
  readonly to: string
  readonly text: string
  readonly message: proto.IMessage
}

export interface WebFake extends FakeProvider {
  readonly webUrl: string
  readonly rootKey: string
  readonly sessionPath: string
  readonly sent: readonly WebSent[]
  /** The ids of received messages that were marked as read. */
  readonly read: readonly string[]
  /** The conversations in which the bot showed that it writes. */
  readonly typing: readonly string[]
  /** Devices that have logged in and are connected. */
  readonly online: number
  readonly logins: number
  /** Messages that no device has confirmed. */
  readonly waiting: number
  /** The files on the server by their path. */
  readonly files: Map<string, Uint8Array>
  /** Writes a message. Returns the platform's id. */
  say(message: WebSay): string
  edit(id: string, message: WebSay): string
  remove(id: string, message: Omit<WebSay, 'text'>): string
  /** Reacts to a message of the bot. */
  react(id: string, emoji: string, message?: Omit<WebSay, 'text'>): string
  /** Sends a message again, as a phone with a bad network does, unless a device still has to confirm it. */
  repeat(id: string): void
  /** The person with the phone scans a QR code. Throws for one that is not shown by a connected device. */
  scan(qr: string): void
  /** Whether a device waits for a code to be typed. */
  readonly wantsCode: boolean
  /** The person with the phone types a code. */
  typeCode(code: string): void
  /** The person removes the device on the phone. */
  unlink(): void
  /** Ends the connections as the server does: `stream:error` with a code. */
  endWith(code: number, reason?: string): void
  /** Refuses the next logins with this code. */
  refuseLogins(code: number, times?: number): void
  /** Refuses the next messages of the bot. */
  refuseMessages(error: string, times?: number): void
  /** Loses the acknowledgement of the next message of the bot, and breaks the connection. */
  loseAck(): void
  person(number: string): Person
  /** The phone of a person forgets its session with the bot, as after its app was installed again from a backup. */
  loseSession(number: string): void
  /** Resolves once everything that people wrote was encrypted and sent. */
  settled(): Promise<void>
}

interface Linked {
  readonly jid: string
  readonly noiseKey: Buffer
  bundle: Bundle | undefined
  readonly identity: Uint8Array
}

interface Client {
  readonly socket: WebSocket
  readonly noise: NoiseServer
  device: Linked | undefined
  /** The registration of a device that is not linked. */
  registration: { readonly noiseKey: Buffer; readonly payload: proto.ClientPayload } | undefined
  isActive: boolean
  refs: string[]
  codeHello: Buffer | undefined
  code: CodeLink | undefined
}

/** A message for the bot that no device has confirmed. */
interface Waiting {
  readonly id: string
  readonly node: BinaryNode
}

/** The data that encrypts a message again. */
interface Written {
  readonly person: Person
  readonly message: proto.IMessage
  readonly attrs: Readonly<Record<string, string>>
  readonly group: string | undefined
  retries: number
}

const uint = (node: BinaryNode | undefined, tag: string, length: number): number => {
  const { content } = (node && getBinaryNodeChild(node, tag)) ?? {}
  return content instanceof Uint8Array ? Buffer.from(content).readUIntBE(0, length) : 0
}

const bytesIn = (node: BinaryNode | undefined, tag: string): Buffer => {
  const { content } = (node && getBinaryNodeChild(node, tag)) ?? {}
  return content instanceof Uint8Array ? Buffer.from(content) : Buffer.alloc(0)
}

const textOf = ({
  conversation,
  extendedTextMessage,
  protocolMessage,
  imageMessage,
  documentMessage,
  videoMessage,
}: proto.IMessage): string =>
  conversation ??
  extendedTextMessage?.text ??
  imageMessage?.caption ??
  documentMessage?.caption ??
  videoMessage?.caption ??
  (protocolMessage?.editedMessage ? textOf(protocolMessage.editedMessage) : '')

export async function startWebFake({ nowMs = Date.now, isLinked = true }: WebFakeOptions = {}): Promise<WebFake> {
  // The library prints keys of people, too.
  await loadLibrary()
  const account = new Account()
  const people = new Map<string, Person>()
  const devices = new Map<string, Linked>()
  const clients = new Set<Client>()
  const waiting: Waiting[] = []
  const written = new Map<string, Written>()
  const [sent, read, typing]: [WebSent[], string[], string[]] = [[], [], []]
  const known = new Set<string>()
  /** How often a device asked for a message of the bot again. */
  const retries = new Map<string, number>()
  const files = new Map<string, Uint8Array>()
  const refusals: { code: number; left: number }[] = []
  const refused: { error: string; left: number }[] = []
  const steps = new Set<Promise<unknown>>()
  let [logins, deviceNumber, isAckLost] = [0, 7, false]
  const folder = mkdtempSync(join(tmpdir(), 'chatapp-web-'))
  const sessionPath = join(folder, 'session')
  const server = new WebSocketServer({ noServer: true })

  const person = (number: string): Person => {
    const found = people.get(number) ?? new Person(number)
    people.set(number, found)
    return found
  }
  /** The phone of the bot's account is a device like the phones of other people. */
  const ownPhone = person(BOT_NUMBER)
  for (const number of ['15550002222', '15550003333']) person(number)
  const botDevice = (): Linked | undefined => [...devices.values()].at(-1)
  const personOf = (jid: string): Person | undefined => {
    const plain = jidNormalizedUser(jid)
    if (plain === `${BOT_LID}@lid`) return ownPhone
    return [...people.values()].find((one) => one.jid === plain || one.lid === plain)
  }
  const lidOf = (one: Person): string => (one === ownPhone ? `${BOT_LID}@lid` : one.lid)
  const addDevice = (noiseKey: Buffer, identity: Uint8Array, bundle?: Bundle): Linked => {
    const device = { jid: `${BOT_NUMBER}:${deviceNumber++}${SERVER}`, noiseKey, identity, bundle }
    devices.set(device.jid, device)
    return device
  }
  const track = (step: Promise<unknown>): void => {
    const settled = step.catch(() => undefined).finally(() => steps.delete(settled))
    steps.add(settled)
  }

  if (isLinked) {
    const jid = `${BOT_NUMBER}:${deviceNumber}${SERVER}`
    const { noiseKey, bundle } = writeLinkedSession(sessionPath, account, { id: jid, lid: `${BOT_LID}:${deviceNumber}@lid` })
    addDevice(noiseKey, bundle.identity, bundle)
  }

  // Messages for the bot.

  const deliver = (): void => {
    for (const client of clients) if (client.isActive) for (const { node } of waiting) sendOnce(client, node)
  }
  const shown = new WeakMap<Client, Set<BinaryNode>>()
  const sendOnce = (client: Client, node: BinaryNode): void => {
    const nodes = shown.get(client) ?? new Set()
    shown.set(client, nodes)
    if (nodes.has(node)) return
    nodes.add(node)
    client.noise.send(node)
  }
  const putContent = (id: string, from: Readonly<Record<string, string>>, content: BinaryNode[]): void => {
    waiting.push({ id, node: { tag: 'message', attrs: { ...from, id, t: String(Math.floor(nowMs() / 1000)), type: 'text' }, content } })
    deliver()
  }
  const put = (id: string, from: Readonly<Record<string, string>>, encrypted: readonly Encrypted[], count?: number): void => {
    const content = encrypted.map(({ type, ciphertext }) => ({
      tag: 'enc',
      attrs: { v: '2', type, ...(count !== undefined && { count: String(count) }) },
      content: ciphertext,
    }))
    putContent(id, from, content)
  }
  const write = (said: WebSay): string => {
    const { text, from = '15550002222', group, message, address = 'number', id: given, isViewOnce, attrs: more = {} } = said
    const author = person(from)
    const id = given ?? randomBytes(ID_BYTES).toString('hex').toUpperCase()
    const names =
      address === 'number'
        ? { jid: author.jid, other: group === undefined ? { sender_lid: author.lid } : { participant_lid: author.lid } }
        : {
            jid: author.lid,
            other: address === 'hidden' ? {} : group === undefined ? { sender_pn: author.jid } : { participant_pn: author.jid },
          }
    const attrs = {
      ...(group === undefined ? { from: names.jid } : { from: group, participant: names.jid }),
      ...names.other,
      notify: 'Somebody',
      ...(address !== 'number' && { addressing_mode: 'lid' }),
      ...more,
    }
    if (isViewOnce) {
      putContent(id, attrs, [{ tag: 'unavailable', attrs: { type: 'view_once' } }])
      return id
    }
    const words = message ?? { conversation: text ?? '' }
    // A phone tells the other devices of its account what it wrote to whom.
    const isCopy = author === ownPhone && group === undefined
    const content = isCopy ? { deviceSentMessage: { destinationJid: more.recipient ?? author.jid, message: words } } : words
    written.set(id, { person: author, message: content, attrs, group, retries: 0 })
    track(
      author.inOrder(async () => {
        const device = botDevice()
        if (!device?.bundle) return
        const encrypted =
          group === undefined
            ? [await author.encrypt(device.jid, device.bundle, content)]
            : await author.encryptForGroup(group, device.jid, device.bundle, content)
        put(id, attrs, encrypted)
      }),
    )
    return id
  }
  const writeAgain = (id: string): void => {
    const found = written.get(id)
    if (!found || found.retries >= RETRIES_MAX) return
    found.retries += 1
    const { person: author, message, attrs } = found
    track(
      author.inOrder(async () => {
        const device = botDevice()
        if (device?.bundle) put(id, attrs, [await author.encrypt(device.jid, device.bundle, message, true)], found.retries)
      }),
    )
  }
  const confirm = (id: string): void => {
    const at = waiting.findIndex((one) => one.id === id)
    if (at >= 0) waiting.splice(at, 1)
  }

  // Messages of the bot.

  async function receive(client: Client, node: BinaryNode): Promise<void> {
    const { id = '', to = '' } = node.attrs
    const ack = (error?: string): void =>
      client.noise.send({ tag: 'ack', attrs: { class: 'message', id, from: to, t: '1', ...(error !== undefined && { error }) } })
    const refusal = refused[0]
    if (refusal) {
      if (--refusal.left === 0) refused.shift()
      return ack(refusal.error)
    }
    const fan = getBinaryNodeChild(node, 'participants')
    const copies = fan ? getBinaryNodeChildren(fan, 'to') : []
    const direct = getBinaryNodeChild(node, 'enc')
    const isFirst = copies.some((copy) => getBinaryNodeChild(copy, 'enc')?.attrs.type === 'pkmsg')
    if (isFirst && !getBinaryNodeChild(node, 'device-identity')) return ack('400')
    const from = client.device?.jid ?? ''
    let content: proto.Message | undefined
    /** The message that a device reads. A device that cannot read a message asks for it again, whatever the server has acknowledged. */
    const readBy = (reader: Person, step: () => Promise<proto.Message>): Promise<proto.Message | undefined> =>
      reader.inOrder(step).catch(() => {
        askAgain(client, reader, node)
        return undefined
      })
    for (const copy of copies) {
      const reader = personOf(copy.attrs.jid ?? '')
      const enc = getBinaryNodeChild(copy, 'enc')
      if (!reader || !enc) continue
      const got = await readBy(reader, () => reader.decrypt(from, encryptedIn(enc)))
      const key = got?.senderKeyDistributionMessage
      if (key) await reader.inOrder(() => reader.learnGroupKey(from, key))
      else if (reader !== ownPhone) content = got ?? content
    }
    const reader =
      direct?.attrs.type === 'skmsg' ? [...people.values()].find((one) => one !== ownPhone) : personOf(node.attrs.participant ?? to)
    if (direct && reader) {
      const group = direct.attrs.type === 'skmsg'
      const { ciphertext } = encryptedIn(direct)
      content = await readBy(reader, () =>
        group ? reader.decryptForGroup(to, from, ciphertext) : reader.decrypt(from, encryptedIn(direct)),
      )
    }
    if (content && !known.has(id)) {
      known.add(id)
      sent.push({ id, to, text: textOf(content), message: content })
    }
    if (isAckLost) {
      isAckLost = false
      return client.socket.terminate()
    }
    ack()
  }

  const askAgain = (client: Client, reader: Person, { attrs: { id = '', to = '' } }: BinaryNode): void => {
    const asked = (retries.get(id) ?? 0) + 1
    if (asked > RETRIES_MAX) return
    retries.set(id, asked)
    const inGroup = to.endsWith('@g.us')
    client.noise.send({
      tag: 'receipt',
      attrs: { id, type: 'retry', from: inGroup ? to : reader.jid, ...(inGroup && { participant: reader.jid }), t: '1' },
      content: [
        { tag: 'retry', attrs: { count: String(asked), id, t: '1', v: '1' } },
        { tag: 'registration', attrs: {}, content: encodeBigEndian(reader.bundle.registrationId) },
      ],
    })
  }

  // Other stanzas of the client.

  const devicesOf = (one: Person): BinaryNode[] => {
    const own = one === ownPhone ? [...devices.keys()].map((jid) => Number(/:(\d+)@/.exec(jid)?.[1])) : []
    return [0, ...own].map((id) => ({ tag: 'device', attrs: { id: String(id), 'key-index': '1' } }))
  }
  function answer(client: Client, node: BinaryNode): BinaryNode[] {
    const { xmlns = '', type = '' } = node.attrs
    const child = Array.isArray(node.content) ? node.content[0] : undefined
    switch (`${xmlns} ${type} ${child?.tag ?? ''}`) {
      case 'encrypt get count':
        return [{ tag: 'count', attrs: { value: String(client.device?.bundle?.preKeys.length ?? 0) } }]
      case 'encrypt get digest':
        return [{ tag: 'digest', attrs: {} }]
      case 'encrypt set registration':
        if (client.device) client.device.bundle = bundleIn(node, client.device.bundle)
        return []
      case 'encrypt get key':
        return [{ tag: 'list', attrs: {}, content: getBinaryNodeChildren(child, 'user').flatMap(({ attrs: { jid = '' } }) => keysOf(jid)) }]
      case 'usync get usync': {
        const users = getBinaryNodeChildren(getBinaryNodeChild(child, 'list'), 'user')
        const list = users.flatMap(({ attrs: { jid = '' } }): BinaryNode[] => {
          const one = personOf(jid)
          if (!one) return []
          const listed = { tag: 'devices', attrs: {}, content: [{ tag: 'device-list', attrs: {}, content: devicesOf(one) }] }
          return [
            {
              tag: 'user',
              attrs: { jid },
              content: [listed, ...(jid.endsWith('@lid') ? [] : [{ tag: 'lid', attrs: { val: lidOf(one) } }])],
            },
          ]
        })
        return [{ tag: 'usync', attrs: {}, content: [{ tag: 'list', attrs: {}, content: list }] }]
      }
      case 'w:g2 get query': {
        const members = [...people.values()].map((one) => ({ tag: 'participant', attrs: { jid: one.jid, lid: lidOf(one) } }))
        const attrs = { id: (node.attrs.to ?? '').replace('@g.us', ''), subject: 'Ops', creation: '1', addressing_mode: 'pn', s_t: '1' }
        return [{ tag: 'group', attrs, content: members }]
      }
      case 'w:m set media_conn': {
        const host = { tag: 'host', attrs: { hostname: new URL(http.url).host, maxContentLengthBytes: '100000000' } }
        return [{ tag: 'media_conn', attrs: { auth: 'upload-credential', ttl: '3600' }, content: [host] }]
      }
      case 'privacy get privacy':
        return [{ tag: 'privacy', attrs: {}, content: [{ tag: 'category', attrs: { name: 'readreceipts', value: 'all' } }] }]
      case 'md set remove-companion-device':
        devices.delete(child?.attrs.jid ?? '')
        return []
      default:
        return []
    }
  }
  const keysOf = (jid: string): BinaryNode[] => {
    const one = personOf(jid)
    return one ? [bundleNode(jid, one.bundle)] : []
  }

  function onNode(client: Client, node: BinaryNode): void {
    const { id = '', class: kind = '', type = '' } = node.attrs
    if (node.tag === 'iq' && (type === 'get' || type === 'set')) return void onQuery(client, node)
    if (node.tag === 'iq') return void onPairSign(client, node)
    if (node.tag === 'message') return void track(receive(client, node))
    if (node.tag === 'chatstate') return void typing.push(node.attrs.to ?? '')
    if (node.tag === 'ack' && kind === 'message') return void confirm(id)
    if (node.tag !== 'receipt') return
    if (type === 'retry') writeAgain(id)
    else if (type === 'read') read.push(id)
    confirm(id)
    client.noise.send({ tag: 'ack', attrs: { class: 'receipt', id, from: node.attrs.to ?? '' } })
  }
  function onQuery(client: Client, node: BinaryNode): void {
    const child = Array.isArray(node.content) ? node.content[0] : undefined
    if (child?.tag === 'link_code_companion_reg') return void onCodeLink(client, node, child)
    client.noise.send({ tag: 'iq', attrs: { id: node.attrs.id ?? '', from: SERVER, type: 'result' }, content: answer(client, node) })
    if (child?.tag === 'remove-companion-device') return void client.socket.close()
    if (child?.tag !== 'active') return
    client.isActive = true
    logins += 1
    for (const { node: message } of waiting) message.attrs.offline = '1'
    deliver()
    client.noise.send({ tag: 'ib', attrs: {}, content: [{ tag: 'offline', attrs: { count: String(waiting.length) } }] })
    client.noise.send({
      tag: 'ib',
      attrs: {},
      content: [{ tag: 'edge_routing', attrs: {}, content: [{ tag: 'routing_info', attrs: {}, content: Buffer.from('route') }] }],
    })
  }

  // Linking.

  function onLogin(client: Client, payload: proto.ClientPayload, noiseKey: Buffer): void {
    const refusal = refusals[0]
    if (refusal) {
      if (--refusal.left === 0) refusals.shift()
      client.noise.send({ tag: 'failure', attrs: { reason: String(refusal.code) } })
      return void client.socket.close()
    }
    if (payload.devicePairingData) {
      client.registration = { noiseKey, payload }
      client.refs = Array.from({ length: 6 }, () => `2@${randomBytes(24).toString('base64')}`)
      const refs = client.refs.map((ref) => ({ tag: 'ref', attrs: {}, content: Buffer.from(ref) }))
      const attrs = { from: SERVER, type: 'set', id: 'pair-1', xmlns: 'md' }
      return void client.noise.send({ tag: 'iq', attrs, content: [{ tag: 'pair-device', attrs: {}, content: refs }] })
    }
    const device = devices.get(`${payload.username}:${payload.device}${SERVER}`)
    if (!device?.noiseKey.equals(noiseKey)) {
      client.noise.send({ tag: 'failure', attrs: { reason: '401' } })
      return void client.socket.close()
    }
    for (const other of clients) if (other !== client && other.device === device) end(other, 440, 'conflict')
    client.device = device
    client.noise.send({
      tag: 'success',
      attrs: { t: String(Math.floor(nowMs() / 1000)), lid: `${BOT_LID}:${/:(\d+)@/.exec(device.jid)?.[1]}@lid` },
    })
  }
  const identityOf = ({ registration }: Client): Buffer => Buffer.from(registration?.payload.devicePairingData?.eIdent ?? [])
  function pair(client: Client, secret: Buffer): void {
    const device = addDevice(client.registration?.noiseKey ?? Buffer.alloc(0), identityOf(client))
    client.device = device
    const content = [
      { tag: 'device-identity', attrs: {}, content: account.identityFor(device.identity, secret) },
      { tag: 'device', attrs: { jid: device.jid, lid: device.jid.replace(BOT_NUMBER, BOT_LID).replace(SERVER, '@lid') } },
      { tag: 'platform', attrs: { name: 'android' } },
    ]
    client.noise.send({
      tag: 'iq',
      attrs: { from: SERVER, type: 'set', id: 'pair-2' },
      content: [{ tag: 'pair-success', attrs: {}, content }],
    })
  }
  /** The device has signed its identity, and connects again with it. */
  function onPairSign(client: Client, node: BinaryNode): void {
    const signed = bytesIn(getBinaryNodeChild(node, 'pair-device-sign'), 'device-identity')
    if (signed.length === 0 || !client.device) return
    if (account.hasSigned(signed, client.device.identity)) return void end(client, 515)
    devices.delete(client.device.jid)
    end(client, 401)
  }
  function onCodeLink(client: Client, node: BinaryNode, child: BinaryNode): void {
    const { id = '' } = node.attrs
    const reply = (content: BinaryNode[]): void => client.noise.send({ tag: 'iq', attrs: { id, from: SERVER, type: 'result' }, content })
    if (child.attrs.stage === 'companion_hello') {
      client.codeHello = bytesIn(child, 'link_code_pairing_wrapped_companion_ephemeral_pub')
      const ref = { tag: 'link_code_pairing_ref', attrs: {}, content: Buffer.from('code-ref') }
      return void reply([{ tag: 'link_code_companion_reg', attrs: { stage: 'companion_hello' }, content: [ref] }])
    }
    const secret = client.code?.secretOf(
      bytesIn(child, 'link_code_pairing_wrapped_key_bundle'),
      bytesIn(child, 'companion_identity_public'),
    )
    reply([])
    if (secret) pair(client, secret)
  }
  const end = (client: Client, code: number, reason?: string): void => {
    const content = reason === undefined ? [] : [{ tag: reason, attrs: { type: 'replaced' } }]
    client.noise.send({ tag: 'stream:error', attrs: { code: String(code) }, content })
    client.socket.close()
  }

  const accept = (socket: WebSocket): void => {
    const noise = new NoiseServer((bytes) => socket.send(bytes), {
      onLogin: (payload, noiseKey) => onLogin(client, payload, noiseKey),
      onNode: (node) => onNode(client, node),
    })
    const client: Client = {
      socket,
      noise,
      device: undefined,
      registration: undefined,
      isActive: false,
      refs: [],
      codeHello: undefined,
      code: undefined,
    }
    clients.add(client)
    socket.on('message', (data) => noise.take(data as Buffer))
    socket.on('close', () => clients.delete(client))
    socket.on('error', () => undefined)
  }

  function serveFile({ method, path, query, body }: ProviderRequest): ProviderReply {
    if (!path.startsWith('/mms/')) return { status: 404 }
    if (method === 'GET') {
      const file = files.get(path)
      return file ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: Buffer.from(file) } : { status: 410 }
    }
    const token = createHash('sha256').update(body).digest('base64url')
    if (query.get('auth') !== 'upload-credential') return { status: 401 }
    if (query.get('token') !== token || !path.endsWith(`/${token}`)) return { status: 400 }
    files.set(path, body)
    return { status: 200, body: { url: `https://mmg.whatsapp.net${path}`, direct_path: path } }
  }

  const http = await startFakeProvider(serveFile, {
    upgrade: (request, socket, head) => server.handleUpgrade(request, socket, head, accept),
  })
  const { close, cut } = http

  const fake: WebFake = {
    ...http,
    webUrl: `${http.url.replace('http', 'ws')}/ws/chat`,
    rootKey: ROOT.public.toString('hex'),
    sessionPath,
    sent,
    read,
    typing,
    files,
    get online() {
      return [...clients].filter(({ isActive }) => isActive).length
    },
    get logins() {
      return logins
    },
    get wantsCode() {
      return [...clients].some(({ codeHello }) => codeHello !== undefined)
    },
    get waiting() {
      return waiting.length
    },
    say: write,
    edit: (id, { text, message, ...more }) =>
      write({
        ...more,
        message: {
          protocolMessage: {
            key: { remoteJid: more.group ?? `${BOT_NUMBER}${SERVER}`, fromMe: true, id },
            type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
            editedMessage: message ?? { conversation: text ?? '' },
          },
        },
        attrs: { edit: '1', ...more.attrs },
      }),
    remove: (id, more) =>
      write({
        ...more,
        message: { protocolMessage: { key: { fromMe: true, id }, type: proto.Message.ProtocolMessage.Type.REVOKE }, ...more.message },
        attrs: { edit: '7', ...more.attrs },
      }),
    react: (id, emoji, more = {}) =>
      write({ ...more, message: { reactionMessage: { key: { remoteJid: `${BOT_NUMBER}${SERVER}`, fromMe: false, id }, text: emoji } } }),
    repeat(id) {
      if (!waiting.some((one) => one.id === id)) writeAgain(id)
    },
    scan(qr) {
      const [, data = ''] = qr.split('#')
      const [ref = '', noiseKey = '', identity = '', secret = ''] = data.split(',')
      const client = [...clients].find(({ refs }) => refs.includes(ref))
      if (!client?.registration) throw new Error('no connected device shows this code')
      if (
        !client.registration.noiseKey.equals(Buffer.from(noiseKey, 'base64')) ||
        !identityOf(client).equals(Buffer.from(identity, 'base64'))
      )
        throw new Error('the code has other keys than the device that shows it')
      pair(client, Buffer.from(secret, 'base64'))
    },
    typeCode(code) {
      const client = [...clients].find(({ codeHello }) => codeHello !== undefined)
      if (!client?.codeHello) throw new Error('no connected device has asked for a code')
      client.code = new CodeLink(account, code.replace('-', ''), client.codeHello)
      const content = [
        { tag: 'link_code_pairing_ref', attrs: {}, content: Buffer.from('code-ref') },
        { tag: 'primary_identity_pub', attrs: {}, content: account.keys.public },
        { tag: 'link_code_pairing_wrapped_primary_ephemeral_pub', attrs: {}, content: client.code.wrapped },
      ]
      client.noise.send({
        tag: 'notification',
        attrs: { from: SERVER, type: 'link_code_companion_reg', id: 'code-1', t: '1' },
        content: [{ tag: 'link_code_companion_reg', attrs: { stage: 'primary_hello' }, content }],
      })
    },
    unlink() {
      devices.clear()
      for (const client of clients) end(client, 401, 'conflict')
    },
    endWith(code, reason) {
      for (const client of clients) end(client, code, reason)
    },
    refuseLogins: (code, times = 1) => void refusals.push({ code, left: times }),
    refuseMessages: (error, times = 1) => void refused.push({ error, left: times }),
    loseAck() {
      isAckLost = true
    },
    person,
    loseSession: (number) => person(number).forget(),
    async settled() {
      while (steps.size > 0) await Promise.all(steps)
    },
    cut(options) {
      cut(options)
    },
    async close() {
      for (const { socket } of clients) socket.terminate()
      server.close()
      await close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return fake
}

const encryptedIn = ({ attrs, content }: BinaryNode): Encrypted => ({
  type: attrs.type ?? '',
  ciphertext: content instanceof Uint8Array ? content : new Uint8Array(),
})

/** The keys that a device uploads: the keys of the session and, each time, further ones for one device each. */
function bundleIn(node: BinaryNode, before: Bundle | undefined): Bundle {
  const skey = getBinaryNodeChild(node, 'skey')
  const list = getBinaryNodeChildren(getBinaryNodeChild(node, 'list'), 'key')
  return {
    registrationId: uint(node, 'registration', 4),
    identity: bytesIn(node, 'identity'),
    signedPreKey: { keyId: uint(skey, 'id', 3), publicKey: bytesIn(skey, 'value'), signature: bytesIn(skey, 'signature') },
    preKeys: [...(before?.preKeys ?? []), ...list.map((key) => ({ keyId: uint(key, 'id', 3), publicKey: bytesIn(key, 'value') }))],
  }
}
