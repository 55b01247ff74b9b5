/** A Slack workspace on loopback: its Web API, socket mode and files, with one bot. Tests write and press buttons by method calls. */
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import { elementsOf } from './fake-blocks.ts'
import { SlackConversations, type SlackMessage } from './fake-conversations.ts'
import { createSlackFiles, type SlackFiles } from './fake-files.ts'
import { answerMethod, type SlackWorkspace } from './fake-methods.ts'
import { createSlackSocket, type SlackSocket } from './fake-socket.ts'

/** The tokens of the bot and of the app. */
export interface SlackTokens {
  readonly bot_token: string
  readonly app_token: string
}

/** How the fake of Slack starts. */
export interface SlackFakeOptions extends Partial<SlackTokens> {
  readonly port?: number
  /** Ids of the conversations; an id that starts with `D` is a direct message. */
  readonly channels?: readonly string[]
  /** Conversations without the bot, and archived conversations. */
  readonly foreign?: readonly string[]
  readonly archived?: readonly string[]
  /** Milliseconds to wait for an acknowledgement; Slack waits 3,000. */
  readonly ackMs?: number
  /** The platform's clock in milliseconds since 1970; default: each message is one second after the last. */
  nowMs?(): number
}

/** A message that a user writes. */
export interface Said {
  readonly text: string
  /** Default `C1`. */
  readonly channel?: string
  /** Default `UADA`. */
  readonly user?: string
  readonly thread?: string
  readonly subtype?: string
  readonly files?: readonly object[]
  /** The message's time in seconds since 1970; default: one second after the last. */
  readonly atSecs?: number
  /** Sends no event for the message, as after an outage longer than Slack's repeats. */
  readonly isLost?: boolean
}

/** A button press of a user. */
export interface Pressed {
  /** The id of the message with the buttons. */
  readonly message: string
  readonly value: string
  readonly channel?: string
  readonly user?: string
}

/** A running fake of Slack. */
export interface SlackFake extends FakeProvider {
  /** For `api_url`. */
  readonly apiUrl: string
  readonly socket: SlackSocket
  readonly files: Pick<SlackFiles, 'add' | 'bytes'>
  readonly statuses: SlackWorkspace['statuses']
  /** Writes a message as a user and returns its id. A message that mentions the bot causes two events. */
  say(said: Said): string
  /** Edits a message as a user: its author, unless a test says that another did. */
  edit(channel: string, ts: string, edit: { readonly text: string; readonly user: string; readonly isLost?: true }): void
  /** Deletes a message. */
  remove(channel: string, ts: string): void
  /** Presses a button as a user. Throws if the message has no such button. */
  press(pressed: Pressed): void
  /** The messages of a conversation, oldest first, including those in threads. */
  messages(channel?: string): readonly SlackMessage[]
  /** Replaces the given tokens; the old ones become invalid. */
  change(tokens: Partial<SlackTokens>): void
}

/** The ids of the bot. */
export const SLACK_BOT = { user: 'USLUICE', id: 'BSLUICE' }
/** The default bot token. */
export const SLACK_BOT_TOKEN = 'xoxb-1-bot-token-01'
/** The default app token. */
export const SLACK_APP_TOKEN = 'xapp-1-A0123-1-app-token-01'

const ACK_MS = 3000
const PRESS_SECS = 1_767_300_000

/** Starts the fake; call `close` to end it. */
export async function startSlackFake(options: SlackFakeOptions = {}): Promise<SlackFake> {
  const { port = 0, channels = ['C1', 'C2', 'D1'], foreign = [], archived = [], ackMs = ACK_MS, nowMs } = options
  let tokens: SlackTokens = { bot_token: options.bot_token ?? SLACK_BOT_TOKEN, app_token: options.app_token ?? SLACK_APP_TOKEN }
  let url = ''
  let presses = 0
  let edits = 0
  const conversations = new SlackConversations([...channels, ...foreign, ...archived], nowMs)
  const files = createSlackFiles(() => url)
  const socket = createSlackSocket({ ackMs })

  const emit = (channel: string, message: SlackMessage, type = 'message'): void => {
    const channel_type = channel.startsWith('D') ? 'im' : 'channel'
    const event = { ...message, type, channel, event_ts: message.ts, ...(type === 'message' && { channel_type }) }
    const payload = {
      token: 'verification',
      team_id: 'T1',
      api_app_id: 'A0123',
      type: 'event_callback',
      event_id: `Ev${message.ts}${type}`,
    }
    socket.emit({ type: 'events_api', payload: { ...payload, event } })
  }
  /** Reports a change of a message, as https://docs.slack.dev/reference/events/message/message_changed and message_deleted show it. */
  const report = (channel: string, event: Readonly<Record<string, unknown>>): void => {
    const channel_type = channel.startsWith('D') ? 'im' : 'channel'
    const payload = { token: 'verification', team_id: 'T1', api_app_id: 'A0123', type: 'event_callback', event_id: `Ev${event.ts}change` }
    const whole = { type: 'message', channel, channel_type, event_ts: event.ts, ...event }
    socket.emit({ type: 'events_api', payload: { ...payload, event: whole } })
  }
  const workspace: SlackWorkspace = {
    get url() {
      return url
    },
    get tokens() {
      return tokens
    },
    bot: SLACK_BOT,
    conversations,
    files,
    foreign: new Set(foreign),
    archived: new Set(archived),
    statuses: [],
    ticket: socket.ticket,
    written: emit,
  }

  const provider = await startFakeProvider(
    (request) => {
      const [, method] = /^\/api\/([\w.]+)$/.exec(request.path) ?? []
      if (method !== undefined && request.method === 'POST') return answerMethod(workspace, method, request)
      return files.answer(request, tokens.bot_token) ?? { status: 404, body: 'not found' }
    },
    { port, upgrade: socket.upgrade },
  )
  url = provider.url
  return {
    ...provider,
    apiUrl: `${url}/api/`,
    socket,
    files,
    statuses: workspace.statuses,
    say({ text, channel = 'C1', user = 'UADA', thread, subtype, files: shared, atSecs, isLost = false }) {
      const message = conversations.add(channel, {
        user,
        text,
        ...(thread !== undefined && { thread_ts: thread }),
        ...(subtype !== undefined && { subtype }),
        ...(shared && { files: shared, subtype: 'file_share' }),
        ...(atSecs !== undefined && { atSecs }),
      })
      if (isLost) return message.ts
      if (text.includes(`<@${SLACK_BOT.user}>`)) emit(channel, message, 'app_mention')
      emit(channel, message)
      return message.ts
    },
    edit(channel, ts, { text, user, isLost }) {
      const before = conversations.find(channel, ts) ?? { type: 'message', ts, user, text: '' }
      const after: SlackMessage = {
        ...before,
        user,
        text,
        edited: { user, ts: `${Number(ts.split('.')[0]) + 1}.${String(++edits).padStart(6, '0')}` },
      }
      if (before.user === user) conversations.replace(channel, after)
      if (isLost) return
      report(channel, { subtype: 'message_changed', hidden: true, message: after, previous_message: before, ts: after.edited?.ts })
    },
    remove(channel, ts) {
      const before = conversations.remove(channel, ts)
      const at = `${Number(ts.split('.')[0]) + 1}.${String(++edits).padStart(6, '0')}`
      report(channel, { subtype: 'message_deleted', hidden: true, deleted_ts: ts, ...(before && { previous_message: before }), ts: at })
    },
    press({ message: ts, value, channel = 'C1', user = 'UADA' }) {
      const message = conversations.find(channel, ts)
      const button = elementsOf(message?.blocks ?? []).find((element) => element.value === value)
      if (!message || !button) throw new Error(`message ${ts} has no button ${value}`)
      const { thread_ts } = message
      const container = { type: 'message', message_ts: ts, channel_id: channel, is_ephemeral: false, ...(thread_ts && { thread_ts }) }
      const action = { ...button, block_id: 'b1', action_ts: `${PRESS_SECS + presses++}.000200` }
      const who = { user: { id: user, username: 'somebody', team_id: 'T1' }, api_app_id: 'A0123', team: { id: 'T1' } }
      const payload = { type: 'block_actions', ...who, container, channel: { id: channel }, message, actions: [action] }
      socket.emit({ type: 'interactive', payload })
    },
    messages: (channel = 'C1') => conversations.list(channel),
    change(changed) {
      tokens = { ...tokens, ...changed }
    },
    async close() {
      socket.close()
      await provider.close()
    },
  }
}

if (import.meta.main) console.log((await startSlackFake()).apiUrl)
