/**
 * One connection to an IMAP server, as RFC 3501, RFC 2177 (IDLE) and RFC 4959 (SASL-IR) describe it, with the answers of Dovecot. It
 * knows the commands of a client that reads, and refuses all others, and commands in the wrong state.
 */
import type { Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { fieldOf, parseRaw, sectionOf, structureOf } from './fake-structure.ts'

export interface FakeMail {
  readonly uid: number
  readonly raw: Buffer
  readonly atMs: number
}

export interface ImapState {
  mails: FakeMail[]
  uidValidity: number
  readonly folder: string
  username: string
  password: string
  /** The accepted access token of XOAUTH2. */
  token: string | undefined
  capabilities: readonly string[]
  /** TLS keys, for STARTTLS. */
  readonly tls: { readonly key: string; readonly cert: string } | undefined
  /** Every command that was understood, without its secrets, oldest first. */
  readonly commands: string[]
  /** Breaks the connection after this many bytes of the answer to the next FETCH. */
  cutFetchAfter: number | undefined
  /** Returns the completion to send instead of running a command; undefined runs it. */
  refuse(command: string): string | undefined
}

type Phase = 'greeted' | 'in' | 'selected'

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

export class FakeImapConnection {
  readonly #state: ImapState
  #socket: Socket
  #buffered = ''
  #phase: Phase = 'greeted'
  #isEncrypted: boolean
  /** The tag of the IDLE or AUTHENTICATE that waits for a line. */
  #waits: { tag: string; take(line: string): void } | undefined
  #isIdle = false
  #isMute = false
  /** How many mails the client knows of. */
  #exists = 0
  #writable = Number.POSITIVE_INFINITY

  constructor(socket: Socket, state: ImapState, isEncrypted: boolean) {
    this.#socket = socket
    this.#state = state
    this.#isEncrypted = isEncrypted
    socket.setNoDelay(true)
    this.#listen()
    this.#send(`* OK [CAPABILITY ${this.#capabilities()}] Fake IMAP ready.`)
  }

  get isSelected(): boolean {
    return this.#phase === 'selected'
  }

  get isIdle(): boolean {
    return this.#isIdle
  }

  /** Tells a client that waits about new mails. */
  announce(): void {
    if (this.#isIdle) this.#sendExists()
  }

  /** Sends a line out of turn. */
  emit(line: string): void {
    this.#send(line)
  }

  /** Sends nothing more, and reads nothing more. */
  mute(): void {
    this.#isMute = true
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }

  #capabilities(): string {
    const { capabilities, tls, token } = this.#state
    const offersTls = tls && !this.#isEncrypted
    const auth = token === undefined ? ['AUTH=PLAIN'] : ['AUTH=PLAIN', 'AUTH=XOAUTH2']
    return ['IMAP4rev1', ...(offersTls ? ['STARTTLS', 'LOGINDISABLED'] : auth), ...capabilities].join(' ')
  }

  #listen(): void {
    this.#socket.on('data', (bytes) => this.#take(bytes.toString('latin1')))
    this.#socket.on('error', () => this.#socket.destroy())
  }

  #take(text: string): void {
    if (this.#isMute) return
    this.#buffered += text
    for (let end = this.#buffered.indexOf('\r\n'); end >= 0; end = this.#buffered.indexOf('\r\n')) {
      const line = this.#buffered.slice(0, end)
      this.#buffered = this.#buffered.slice(end + 2)
      const waits = this.#waits
      if (waits) waits.take(line)
      else this.#run(line)
    }
  }

  #run(line: string): void {
    const [, tag = '', name = '', rest = ''] = /^([A-Za-z\d]+) ([A-Za-z]+(?: (?:SEARCH|FETCH|STORE))?)(?: (.*))?$/i.exec(line) ?? []
    if (tag === '') return void this.#send('* BAD Invalid command')
    const command = name.toUpperCase()
    this.#state.commands.push(['LOGIN', 'AUTHENTICATE'].includes(command) ? command : `${command} ${rest}`.trim())
    const refusal = this.#state.refuse(`${command} ${rest}`)
    if (refusal !== undefined) return void this.#send(`${tag} ${refusal}`)
    const handler = this.#handlers(tag, rest)[command]
    if (!handler) return void this.#send(`${tag} BAD Error in IMAP command ${command}: Unknown command.`)
    const [phases, run] = handler
    if (!phases.includes(this.#phase)) return void this.#send(`${tag} BAD Error in IMAP command ${command}: Invalid state.`)
    run()
  }

  #handlers(tag: string, rest: string): Readonly<Record<string, readonly [readonly Phase[], () => void]>> {
    const anywhere = ['greeted', 'in', 'selected'] as const
    const loggedIn = ['in', 'selected'] as const
    return {
      CAPABILITY: [anywhere, () => this.#done(tag, `* CAPABILITY ${this.#capabilities()}`)],
      NOOP: [
        anywhere,
        () => {
          if (this.isSelected) this.#sendExists()
          this.#done(tag)
        },
      ],
      LOGOUT: [
        anywhere,
        () => {
          this.#send('* BYE Logging out')
          this.#done(tag)
          this.#socket.end()
        },
      ],
      STARTTLS: [['greeted'], () => this.#startTls(tag)],
      LOGIN: [['greeted'], () => this.#login(tag, rest)],
      AUTHENTICATE: [['greeted'], () => this.#authenticate(tag, rest)],
      ID: [anywhere, () => this.#done(tag, '* ID ("name" "fake")')],
      EXAMINE: [loggedIn, () => this.#examine(tag, rest)],
      IDLE: [['selected'], () => this.#idle(tag)],
      'UID SEARCH': [['selected'], () => this.#search(tag, rest)],
      'UID FETCH': [['selected'], () => this.#fetch(tag, rest)],
    }
  }

  #startTls(tag: string): void {
    const { tls } = this.#state
    if (!tls || this.#isEncrypted) return void this.#send(`${tag} BAD TLS is not available.`)
    this.#socket.removeAllListeners('data')
    this.#socket.write(`${tag} OK Begin TLS negotiation now.\r\n`)
    this.#isEncrypted = true
    this.#socket = new TLSSocket(this.#socket, { isServer: true, secureContext: createSecureContext({ ...tls }) })
    this.#listen()
  }

  #login(tag: string, rest: string): void {
    if (this.#state.tls && !this.#isEncrypted) return void this.#send(`${tag} NO [PRIVACYREQUIRED] Plaintext authentication disallowed.`)
    const [, username, password] = /^"((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"$/.exec(rest) ?? []
    const plain = (text = ''): string => Buffer.from(text.replace(/\\(.)/g, '$1'), 'latin1').toString()
    this.#authenticated(tag, plain(username) === this.#state.username && plain(password) === this.#state.password)
  }

  #authenticate(tag: string, rest: string): void {
    const [mechanism = '', initial] = rest.split(' ')
    const known = this.#capabilities().split(' ').includes(`AUTH=${mechanism.toUpperCase()}`)
    if (!known) return void this.#send(`${tag} NO [CANNOT] Unsupported authentication mechanism.`)
    const check = (response: string): void => {
      this.#waits = undefined
      const given = Buffer.from(response, 'base64').toString()
      const { username, password, token } = this.#state
      if (mechanism.toUpperCase() === 'PLAIN') return void this.#authenticated(tag, given === `\0${username}\0${password}`)
      if (given === `user=${username}\x01auth=Bearer ${token}\x01\x01`) return void this.#authenticated(tag, true)
      // The error of XOAUTH2 is a challenge; see Google's documentation of the mechanism.
      this.#waits = {
        tag,
        take: () => {
          this.#waits = undefined
          this.#authenticated(tag, false)
        },
      }
      this.#send(`+ ${Buffer.from('{"status":"400","schemes":"Bearer","scope":"https://mail.google.com/"}').toString('base64')}`)
    }
    if (initial !== undefined && this.#state.capabilities.includes('SASL-IR')) return void check(initial)
    if (initial !== undefined) return void this.#send(`${tag} BAD Error in IMAP command AUTHENTICATE: Initial response is not supported.`)
    this.#waits = { tag, take: check }
    this.#send('+ ')
  }

  #authenticated(tag: string, isRight: boolean): void {
    if (!isRight) return void this.#send(`${tag} NO [AUTHENTICATIONFAILED] Authentication failed.`)
    this.#phase = 'in'
    this.#send(`${tag} OK [CAPABILITY ${this.#capabilities()}] Logged in`)
  }

  #examine(tag: string, rest: string): void {
    const { folder, mails, uidValidity } = this.#state
    if (rest !== `"${folder}"`) return void this.#send(`${tag} NO [NONEXISTENT] Mailbox doesn't exist: ${rest}`)
    this.#phase = 'selected'
    this.#exists = mails.length
    for (const line of [
      '* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)',
      '* OK [PERMANENTFLAGS ()] Read-only mailbox.',
      `* ${mails.length} EXISTS`,
      '* 0 RECENT',
      `* OK [UIDVALIDITY ${uidValidity}] UIDs valid`,
      `* OK [UIDNEXT ${(mails.at(-1)?.uid ?? 0) + 1}] Predicted next UID`,
    ])
      this.#send(line)
    this.#send(`${tag} OK [READ-ONLY] Examine completed.`)
  }

  #idle(tag: string): void {
    if (!this.#state.capabilities.includes('IDLE')) return void this.#send(`${tag} BAD Error in IMAP command IDLE: Unknown command.`)
    this.#isIdle = true
    this.#waits = {
      tag,
      take: (line) => {
        this.#waits = undefined
        this.#isIdle = false
        if (line.toUpperCase() !== 'DONE') return this.#send(`${tag} BAD Expected DONE.`)
        this.#done(tag)
      },
    }
    this.#send('+ idling')
    this.#sendExists()
  }

  #search(tag: string, rest: string): void {
    const { mails } = this.#state
    const [, from, to] = /^UID (\d+|\*)(?::(\d+|\*))?$/.exec(rest) ?? []
    const [, day, month = '', year] = /^SINCE (\d{1,2})-([A-Z][a-z]{2})-(\d{4})$/.exec(rest) ?? []
    if (from === undefined && day === undefined) return void this.#send(`${tag} BAD Error in IMAP command UID SEARCH: Unknown argument`)
    const max = mails.at(-1)?.uid ?? 0
    // A range is the same in both directions (RFC 3501, section 9), so that `9:*` contains the last message if its UID is 5.
    const ends = [from, to ?? from].map((end) => (end === '*' ? max : Number(end))).toSorted((a, b) => a - b)
    const sinceMs = Date.UTC(Number(year), MONTHS.indexOf(month), Number(day))
    const found = mails.filter(({ uid, atMs }) => (from === undefined ? atMs >= sinceMs : uid >= (ends[0] ?? 0) && uid <= (ends[1] ?? 0)))
    this.#sendExists()
    this.#done(tag, `* SEARCH${found.map(({ uid }) => ` ${uid}`).join('')}`)
  }

  #fetch(tag: string, rest: string): void {
    const [, uid, items = ''] = /^(\d+) \((.*)\)$/.exec(rest) ?? []
    if (uid === undefined) return void this.#send(`${tag} BAD Error in IMAP command UID FETCH: Invalid arguments.`)
    const index = this.#state.mails.findIndex((mail) => mail.uid === Number(uid))
    const mail = this.#state.mails[index]
    const wanted = items.match(/BODY\.PEEK\[[^\]]*\](?:<\d+\.\d+>)?|[A-Z0-9.]+/g) ?? []
    if (!mail || index >= this.#exists) return void this.#done(tag)
    const parts = wanted.map((item) => this.#item(item, mail))
    if (parts.includes(undefined)) return void this.#send(`${tag} BAD Error in IMAP command UID FETCH: Unknown parameter`)
    const pieces: (string | Buffer)[] = [`* ${index + 1} FETCH (`]
    for (const [at, part] of parts.entries()) pieces.push(at > 0 ? ' ' : '', ...(part ?? []))
    this.#writable = this.#state.cutFetchAfter ?? Number.POSITIVE_INFINITY
    this.#state.cutFetchAfter = undefined
    this.#write(Buffer.concat([...pieces, ')\r\n'].map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece))))
    this.#done(tag)
  }

  #item(item: string, { uid, raw, atMs }: FakeMail): readonly (string | Buffer)[] | undefined {
    if (item === 'UID') return [`UID ${uid}`]
    if (item === 'INTERNALDATE') return [`INTERNALDATE "${internalDate(atMs)}"`]
    const mail = parseRaw(raw)
    if (item === 'BODYSTRUCTURE') return [`BODYSTRUCTURE ${structureOf(mail)}`]
    const [, section, from, length] = /^BODY\.PEEK\[([^\]]*)\](?:<(\d+)\.(\d+)>)?$/.exec(item) ?? []
    if (section === undefined) return undefined
    const bytes = sectionOf(mail, raw, section)
    const name = `BODY[${section}]${from === undefined ? '' : `<${from}>`}`
    if (!bytes) return [`${name} NIL`]
    const piece = from === undefined ? bytes : bytes.subarray(Number(from), Number(from) + Number(length))
    return [`${name} {${piece.length}}\r\n`, piece]
  }

  #sendExists(): void {
    const { mails } = this.#state
    if (mails.length === this.#exists) return
    this.#exists = mails.length
    this.#send(`* ${mails.length} EXISTS`)
  }

  #done(tag: string, data?: string): void {
    if (data !== undefined) this.#send(data)
    this.#send(`${tag} OK Completed.`)
  }

  #send(line: string): void {
    this.#write(Buffer.from(`${line}\r\n`, 'latin1'))
  }

  #write(bytes: Buffer): void {
    if (this.#isMute || this.#writable <= 0) return
    if (bytes.length <= this.#writable) {
      this.#writable -= bytes.length
      this.#socket.write(bytes)
      return
    }
    const rest = bytes.subarray(0, this.#writable)
    this.#writable = 0
    this.#socket.write(rest, () => this.#socket.destroy())
  }
}

/** The `Subject` of a mail, for tests. */
export const subjectOf = ({ raw }: FakeMail): string => fieldOf(parseRaw(raw).header, 'subject') ?? ''

function internalDate(ms: number): string {
  const date = new Date(ms)
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = String(date.getUTCDate()).padStart(2, ' ')
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(':')
  return `${day}-${MONTHS[date.getUTCMonth()]}-${date.getUTCFullYear()} ${time} +0000`
}
