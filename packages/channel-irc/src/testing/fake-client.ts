/** One connection of the fake server. The numerics and their texts follow https://modern.ircdocs.horse and RFC 2812. */
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { ProviderFault } from '@sluice/testkit/fake-provider'

/** A message that the server accepted. */
export interface IrcMessage {
  readonly id: string
  readonly atMs: number
  readonly from: string
  /** The account of the author; undefined for a person who is not logged in. */
  readonly account?: string | undefined
  readonly target: string
  readonly text: string
  readonly tags: Readonly<Record<string, string>>
  /** Deleted messages are left out of the history. */
  readonly isDeleted?: true
}

/** What all connections share. */
export interface IrcState {
  readonly nowMs: () => number
  readonly capabilities: readonly string[]
  readonly supports: readonly string[]
  readonly serverPassword: string | undefined
  password: string
  readonly messages: IrcMessage[]
  readonly lines: string[]
  readonly closed: Set<string>
  readonly people: Set<string>
  nicks(): readonly string[]
  faultOf(target: string, text: string): ProviderFault | undefined
}

const LINE_BYTES_MAX = 512
const NICK = /^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,30}$/

export class FakeClient {
  readonly #socket: Socket
  readonly #state: IrcState
  readonly #enabled = new Set<string>()
  readonly #joined = new Set<string>()
  nick: string | undefined
  #user: string | undefined
  #password: string | undefined
  #sasl = ''
  #isNegotiating = false
  #isLoggedIn = false
  #isMuted = false
  #batches = 0
  isRegistered = false

  constructor(socket: Socket, state: IrcState) {
    this.#socket = socket
    this.#state = state
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    const lines = createInterface({ input: socket })
    lines.on('error', () => undefined)
    lines.on('line', (line) => {
      if (!this.#isMuted) this.#take(line)
    })
  }

  send(line: string): void {
    if (!this.#isMuted && !this.#socket.destroyed) this.#socket.write(`${line}\r\n`)
  }

  mute(): void {
    this.#isMuted = true
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }

  /** Shows to the bot that a message was deleted. See https://ircv3.net/specs/extensions/message-redaction. */
  receiveDeletion({ id, from, target }: Pick<IrcMessage, 'id' | 'from' | 'target'>): void {
    const isSeen = this.#joined.has(target) || target === this.nick
    if (this.isRegistered && isSeen && this.#enabled.has('draft/message-redaction'))
      this.send(`:${from}!u@host.example REDACT ${target} ${id}`)
  }

  /** Shows a message to the bot if it is meant for it. */
  receive(message: IrcMessage): void {
    if (this.isRegistered && (this.#isIn(message.target) || message.target === this.nick)) this.send(this.#shown(message))
  }

  /** A target such as `@#ops` reaches the operators of a channel. See https://modern.ircdocs.horse/#statusmsg-parameter. */
  #isIn(target: string): boolean {
    const isForSome = this.#state.supports.some((token) => token.startsWith('STATUSMSG=') && token.includes(target[0] ?? ' ', 10))
    return this.#joined.has(isForSome ? target.slice(1) : target)
  }

  #shown(message: IrcMessage, batch?: string): string {
    const tags = {
      ...(batch !== undefined && { batch }),
      ...(this.#enabled.has('server-time') && { time: new Date(message.atMs).toISOString() }),
      ...(this.#enabled.has('message-tags') && { msgid: message.id, ...message.tags }),
      ...(this.#enabled.has('account-tag') && message.account !== undefined && { account: message.account }),
    }
    const text = Object.entries(tags).map(([key, value]) => `${key}=${value}`)
    return `${text.length > 0 ? `@${text.join(';')} ` : ''}:${message.from}!u@host.example PRIVMSG ${message.target} :${message.text}`
  }

  #reply(numeric: string, ...params: readonly string[]): void {
    this.send(`:irc.example ${numeric} ${[this.nick ?? '*', ...params.slice(0, -1), `:${params.at(-1)}`].join(' ')}`)
  }

  #take(line: string): void {
    this.#state.lines.push(line)
    const [tags, rest] = line.startsWith('@') ? [line.slice(1, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] : ['', line]
    if (Buffer.byteLength(rest) > LINE_BYTES_MAX - 2) return void this.#reply('417', 'Input line was too long')
    const at = rest.indexOf(' :')
    const words = (at === -1 ? rest : rest.slice(0, at)).split(' ').filter(Boolean)
    const params = at === -1 ? words.slice(1) : [...words.slice(1), rest.slice(at + 2)]
    const command = words[0] ?? ''
    if (this.isRegistered) this.#takeCommand(command, params, tags)
    else this.#register(command, params)
  }

  #register(command: string, params: readonly string[]): void {
    const [first = ''] = params
    if (command === 'CAP') return void this.#negotiate(params)
    if (command === 'PASS') this.#password = first
    else if (command === 'USER') this.#user = first
    else if (command === 'AUTHENTICATE') this.#authenticate(first)
    else if (command === 'NICK' && !NICK.test(first)) this.#reply('432', first, 'Erroneous nickname')
    else if (command === 'NICK' && this.#state.nicks().includes(first)) this.#reply('433', first, 'Nickname is already in use')
    else if (command === 'NICK') this.nick = first
    else if (command === 'PING') this.send(`:irc.example PONG irc.example :${first}`)
    else return void this.#reply('451', 'You have not registered')
    this.#welcome()
  }

  #negotiate([what, list = '']: readonly string[]): void {
    const offered = this.#state.capabilities.map((name) => name.split('=')[0] ?? '')
    this.#isNegotiating = what !== 'END'
    if (what === 'LS') {
      const half = this.#state.capabilities.length >> 1
      this.send(`:irc.example CAP * LS * :${this.#state.capabilities.slice(0, half).join(' ')}`)
      this.send(`:irc.example CAP * LS :${this.#state.capabilities.slice(half).join(' ')}`)
    } else if (what === 'REQ') {
      const wanted = list.split(' ')
      const isKnown = wanted.every((name) => offered.includes(name))
      if (isKnown) for (const name of wanted) this.#enabled.add(name)
      this.send(`:irc.example CAP * ${isKnown ? 'ACK' : 'NAK'} :${list}`)
    }
    this.#welcome()
  }

  #authenticate(piece: string): void {
    if (piece === 'PLAIN') return void this.send(':irc.example AUTHENTICATE +')
    this.#sasl += piece === '+' ? '' : piece
    if (piece.length === 400) return
    const [, account, password] = Buffer.from(this.#sasl, 'base64').toString().split('\0')
    this.#isLoggedIn = account === 'sluice' && password === this.#state.password
    if (!this.#isLoggedIn) return void this.#reply('904', 'SASL authentication failed')
    this.#reply('900', `${this.nick}!u@host.example`, 'sluice', 'You are now logged in as sluice')
    this.#reply('903', 'SASL authentication successful')
  }

  #welcome(): void {
    if (this.nick === undefined || this.#user === undefined || this.#isNegotiating || this.isRegistered) return
    const { serverPassword, supports } = this.#state
    if (serverPassword !== undefined && this.#password !== serverPassword) {
      this.#reply('464', 'Password incorrect')
      this.send('ERROR :Closing link: (Bad password)')
      return void this.#socket.end()
    }
    this.isRegistered = true
    this.#reply('001', 'Welcome')
    this.#reply('005', ...supports, 'are supported by this server')
    this.#reply('422', 'MOTD File is missing')
  }

  #takeCommand(command: string, params: readonly string[], tags: string): void {
    const [first = '', second = ''] = params
    if (command === 'PING') this.send(`:irc.example PONG irc.example :${first}`)
    else if (command === 'JOIN') this.#join(first)
    else if (command === 'PRIVMSG') this.#message(first, second, tags)
    else if (command === 'CHATHISTORY') this.#history(params)
    else if (command === 'QUIT') this.#quit()
    else if (command === 'NICK') this.#rename(first)
    else if (!['PONG', 'MODE', 'TAGMSG'].includes(command)) this.#reply('421', command, 'Unknown command')
  }

  /** The nick is free at once. */
  #quit(): void {
    this.nick = undefined
    this.#socket.end('ERROR :Closing link\r\n')
  }

  #rename(nick: string): void {
    if (this.#state.nicks().includes(nick)) return void this.#reply('433', nick, 'Nickname is already in use')
    this.send(`:${this.nick}!u@host.example NICK ${nick}`)
    this.nick = nick
  }

  #join(channel: string): void {
    if (this.#state.closed.has(channel)) return void this.#reply('474', channel, 'Cannot join channel (+b)')
    this.#joined.add(channel)
    this.send(`:${this.nick}!u@host.example JOIN ${channel}`)
    this.#reply('366', channel, 'End of /NAMES list')
  }

  #message(target: string, text: string, tags: string): void {
    const { people, messages, nowMs } = this.#state
    if (text === '') return void this.#reply('412', 'No text to send')
    const isInChannel = this.#isIn(target)
    if (target.startsWith('#') && !isInChannel) return void this.#reply('404', target, 'Cannot send to channel')
    const fault = this.#state.faultOf(target, text)
    if (fault?.fault === 'reset' || fault?.fault === 'hang') return void this.reset()
    if (fault?.fault === 'status')
      return void this.#reply('263', 'PRIVMSG', 'This command could not be completed because it has been used recently')
    if (!isInChannel && target !== 'NickServ' && !people.has(target)) return void this.#reply('401', target, 'No such nick/channel')
    const given = Object.fromEntries(tags === '' ? [] : tags.split(';').map((tag) => tag.split('=')))
    const message = { id: `m-${messages.length + 1}`, atMs: nowMs(), from: 'sluice', target, text, tags: given }
    messages.push(message)
    if (fault?.fault === 'lost' || fault?.fault === 'cut' || fault?.fault === 'garbage') return void this.reset()
    if (this.#enabled.has('echo-message')) this.send(this.#shown({ ...message, from: this.nick ?? 'sluice' }))
  }

  /** See https://ircv3.net/specs/extensions/chathistory. */
  #history([what, target = '', from = '', limitText]: readonly string[]): void {
    if (!this.#enabled.has('draft/chathistory')) return void this.#reply('421', 'CHATHISTORY', 'Unknown command')
    const isDirect = (message: IrcMessage) => message.target === 'sluice'
    const ref = `h${++this.#batches}`
    const sinceMs = Date.parse((what === 'TARGETS' ? target : from).replace('timestamp=', ''))
    const found = this.#state.messages.filter(({ atMs, isDeleted }) => atMs > sinceMs && isDeleted !== true)
    if (what === 'TARGETS') {
      this.send(`:irc.example BATCH +${ref} draft/chathistory-targets`)
      const names = new Set(found.map((message) => (isDirect(message) ? message.from : message.target)))
      for (const name of names) this.send(`@batch=${ref} :irc.example CHATHISTORY TARGETS ${name} ${new Date(0).toISOString()}`)
      return void this.send(`:irc.example BATCH -${ref}`)
    }
    if (target.startsWith('#') && !this.#joined.has(target)) {
      return void this.send(`:irc.example FAIL CHATHISTORY INVALID_TARGET ${what} ${target} :Messages could not be retrieved`)
    }
    const between = found.filter((message) => message.target === target || (message.from === target && isDirect(message)))
    this.send(`:irc.example BATCH +${ref} chathistory ${target}`)
    for (const message of between.slice(0, Number(limitText))) this.send(this.#shown(message, ref))
    this.send(`:irc.example BATCH -${ref}`)
  }
}
