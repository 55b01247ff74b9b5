/** One connection of the linked device, from connecting to its end. It never reconnects. */
import { BoundedMap } from '@sluice/kit'
import { proxyAgent } from '@sluice/kit/proxy'
import { AppError, errorText, type Logger } from '@sluice/sdk'
import type { BinaryNode, ConnectionState, GroupMetadata, proto, SocketConfig, WASocket } from '@whiskeysockets/baileys'
import { Arrivals } from './arrivals.ts'
import type { Ending } from './close-codes.ts'
import type { ChatappWebConfig } from './config.ts'
import type { DeviceState } from './device-state.ts'
import type { Library } from './library.ts'
import { durableRepository } from './signal-repository.ts'

const CONNECT_MS = 20_000
const KEEP_ALIVE_MS = 30_000
const CLOSE_MS = 1000
const GROUPS_MAX = 200
const GROUP_AGE_MS_MAX = 300_000
/** A commit that fails is tried again this often; then the sender is asked to send the message again. */
const COMMITS = { maxCommitRetries: 3, delayBetweenTriesMs: 500 }

export interface DeviceOptions {
  readonly library: Library
  readonly state: DeviceState
  readonly config: ChatappWebConfig
  readonly log: Logger
  /** Called when received messages may be delivered. */
  onReceived(): void
}

export class Device {
  readonly sock: WASocket
  readonly state: DeviceState
  readonly #opened = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<Ending>()
  readonly #updates: ((update: Partial<ConnectionState>) => void)[] = []
  readonly #groups = new BoundedMap<string, { readonly group: GroupMetadata; readonly atMs: number }>(GROUPS_MAX)
  readonly #arrivals = new Arrivals()
  /** The stanza of each encrypted content that is being decrypted, with the name of its message. */
  readonly #contents = new WeakMap<Uint8Array, { readonly stanza: BinaryNode; readonly name: string }>()

  constructor(options: DeviceOptions) {
    const { library, state, config, log, onReceived } = options
    this.state = state
    if (config.web_root_key !== undefined) trust(library, config.web_root_key)
    const agent = proxyAgent(new URL(config.web_url ?? library.DEFAULT_CONNECTION_CONFIG.waWebSocketUrl))
    this.sock = library.makeWASocket({
      auth: { creds: state.creds, keys: state.keys },
      logger: quietLogger(log),
      browser: library.Browsers.ubuntu('Chrome'),
      connectTimeoutMs: CONNECT_MS,
      keepAliveIntervalMs: KEEP_ALIVE_MS,
      markOnlineOnConnect: false,
      syncFullHistory: false,
      emitOwnEvents: false,
      // The first part of the history has the numbers behind hidden ids. Old messages are not answered, so the rest is not read.
      shouldSyncHistoryMessage: ({ syncType }) => syncType === library.proto.HistorySync.HistorySyncType.INITIAL_BOOTSTRAP,
      shouldIgnoreJid: isIgnored,
      transactionOpts: COMMITS,
      getMessage: async ({ id }) => state.sent(id ?? ''),
      cachedGroupMetadata: async (jid) => this.#knownGroup(jid),
      makeSignalRepository: durableRepository({
        library,
        state,
        arrivalOf: (content) => this.#contents.get(content),
        onDone: (stanza) => {
          this.#arrivals.done(stanza)
          onReceived()
        },
      }),
      ...(config.web_url !== undefined && { waWebSocketUrl: config.web_url }),
      ...(agent && { agent, fetchAgent: agent }),
      ...(config.web_version !== undefined && { version: versionOf(config.web_version) }),
    })
    this.#observe(options)
  }

  /** Resolves when the platform has accepted the device. Rejects if the connection ends before. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  /** Resolves when the connection has ended. */
  get ended(): Promise<Ending> {
    return this.#ended.promise
  }

  onUpdate(listener: (update: Partial<ConnectionState>) => void): void {
    this.#updates.push(listener)
  }

  /** Returns the members of a group, which are asked for again after some minutes. */
  async group(jid: string): Promise<GroupMetadata> {
    const known = this.#knownGroup(jid)
    if (known) return known
    const group = await this.sock.groupMetadata(jid)
    this.#groups.set(jid, { group, atMs: performance.now() })
    return group
  }

  /** The name of the first message that is being decrypted: later ones wait for it. */
  get firstOpen(): string | undefined {
    return this.#arrivals.first
  }

  /** Ends the connection. The device stays linked. */
  async close(): Promise<void> {
    const closing = Promise.resolve(this.sock.end(undefined)).catch(() => undefined)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS)
    })
    await Promise.race([closing, late])
    clearTimeout(timer)
    this.#end({ code: undefined, reason: 'closed' })
  }

  #observe({ library, log, onReceived }: DeviceOptions): void {
    const { ev, ws } = this.sock
    this.#opened.promise.catch(() => undefined)
    ws.on('frame', (frame: BinaryNode | Uint8Array) => {
      if ('tag' in frame && frame.tag === 'message') this.#arrived(frame)
    })
    ev.on('creds.update', () => {
      this.state.saveCreds().catch((error: unknown) => log.warn('credentials of the device not stored', { reason: errorText(error) }))
    })
    ev.on('connection.update', (update) => {
      for (const listener of this.#updates) listener(update)
      if (update.connection === 'open') this.#opened.resolve()
      if (update.connection === 'close') this.#end(endingOf(update.lastDisconnect?.error))
    })
    const forgetGroup = (id: string | undefined): void => void (id !== undefined && this.#groups.delete(id))
    ev.on('group-participants.update', ({ id }) => forgetGroup(id))
    ev.on('groups.update', (groups) => {
      for (const { id } of groups) forgetGroup(id)
    })
    ev.on('messages.upsert', ({ messages, requestId }) => {
      for (const { key, message: given, messageTimestamp, pushName } of messages) {
        // The phone has sent the content of a message that the platform could not deliver to this device.
        const sentByPhone = requestId === undefined ? undefined : given
        const message = sentByPhone ?? (!given && key.isViewOnce ? ONLY_ON_PHONE : undefined)
        if (!message || !key.id) continue
        const content = Buffer.from(library.proto.Message.encode(message).finish()).toString('base64')
        const kept = this.state.keeping(this.state.nextName(), {
          key,
          atSecs: library.toNumber(messageTimestamp),
          content,
          ...(pushName && { pushName }),
        })
        Promise.resolve(this.state.keys.set(kept)).then(
          () => onReceived(),
          (error: unknown) => log.warn('message not stored', { reason: errorText(error) }),
        )
      }
    })
  }

  #arrived(stanza: BinaryNode): void {
    if (!Array.isArray(stanza.content) || isIgnored(stanza.attrs.from ?? '')) return
    const encrypted = stanza.content.flatMap(({ tag, attrs, content }) =>
      tag === 'enc' && DECRYPTED.has(attrs.type ?? '') && content instanceof Uint8Array ? [content] : [],
    )
    const name = this.state.nextName()
    for (const content of encrypted) this.#contents.set(content, { stanza, name })
    this.#arrivals.add(stanza, name, encrypted.length)
  }

  #end(ending: Ending): void {
    this.#ended.resolve(ending)
    this.#opened.reject(new AppError('unavailable', `The connection to WhatsApp ended: ${ending.reason}`))
  }

  #knownGroup(jid: string): GroupMetadata | undefined {
    const known = this.#groups.get(jid)
    return known && performance.now() - known.atMs < GROUP_AGE_MS_MAX ? known.group : undefined
  }
}

/** What stands for a message to be viewed once, whose content the platform gives to phones only. */
const ONLY_ON_PHONE: proto.IMessage = { placeholderMessage: { type: 0 } }

/** Statuses, channels and lists of recipients are ignored. */
const isIgnored = (jid: string): boolean => !/@(?:s\.whatsapp\.net|lid|hosted|hosted\.lid|g\.us)$/.test(jid)

/** The types of contents that the library decrypts. */
const DECRYPTED: ReadonlySet<string> = new Set(['pkmsg', 'msg', 'skmsg'])

/** Errors of the library carry the status code of the platform. */
function endingOf(error: unknown): Ending {
  const { output } = (error ?? {}) as { readonly output?: { readonly statusCode?: number } }
  return { code: output?.statusCode, reason: error === undefined ? 'closed' : errorText(error) }
}

function trust(library: Library, hex: string): void {
  library.WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(hex, 'hex')
}

const versionOf = (text: string): [number, number, number] => {
  const [first = 0, second = 0, third = 0] = text.split('.').map(Number)
  return [first, second, third]
}

/** The library logs keys and messages as objects, so only its texts are kept. */
function quietLogger(log: Logger): SocketConfig['logger'] {
  const write = (value: unknown, text?: string): void =>
    log.debug('protocol library', { channel: 'chatapp', detail: text ?? (typeof value === 'string' ? value : '') })
  const logger: SocketConfig['logger'] = {
    level: 'warn',
    child: () => logger,
    trace: () => undefined,
    debug: () => undefined,
    info: () => undefined,
    warn: write,
    error: write,
  }
  return logger
}
