/** The commands that people write in chats, which Sluice itself carries out. One place names them, for the parser, `/help` and the menus of platforms. */
import type { GatewayText } from '../feature/gateway-texts.ts'
import type { Standing } from '../values/standing.ts'

export interface ChatCommandRow {
  /** The text that says what it does. */
  readonly says: GatewayText
  /** The lowest standing that may use it. Default: every person who may write. */
  readonly least?: Standing
  /** The lowest standing that may use it in a conversation that all people of a room share; `least` unless given. */
  readonly leastInRoom?: Standing
  /** Whether words may follow it. */
  readonly takesWords?: true
}

const COMMANDS = {
  stop: { says: 'command_stop' },
  new: { says: 'command_new', leastInRoom: 'listed' },
  compact: { says: 'command_compact', takesWords: true },
  retry: { says: 'command_retry' },
  status: { says: 'command_status' },
  usage: { says: 'command_usage' },
  model: { says: 'command_model', least: 'listed', takesWords: true },
  who: { says: 'command_who' },
  mute: { says: 'command_mute', least: 'listed', takesWords: true },
  unmute: { says: 'command_unmute', least: 'listed' },
  link: { says: 'command_link', least: 'listed', takesWords: true },
  unlink: { says: 'command_unlink', least: 'listed' },
  help: { says: 'command_help' },
} as const satisfies Readonly<Record<string, ChatCommandRow>>

export type ChatCommandName = keyof typeof COMMANDS

export const CHAT_COMMANDS: Readonly<Record<ChatCommandName, ChatCommandRow>> = COMMANDS

export interface WrittenCommand {
  readonly name: ChatCommandName
  /** The words after the name; often empty. */
  readonly words: string
}

const WRITTEN = /^\/([a-z]{1,16})(?:\s+(\S[\s\S]*))?$/i

/**
 * Returns the command that a text is; undefined for any other text. `/stop@bot` is none: a channel has removed the name of its own bot, so that
 * it names another one.
 */
export function chatCommandIn(text: string): WrittenCommand | undefined {
  const [, given = '', words = ''] = WRITTEN.exec(text.trim()) ?? []
  const name = given.toLowerCase()
  if (!isCommand(name) || (words !== '' && !CHAT_COMMANDS[name].takesWords)) return undefined
  return { name, words }
}

const isCommand = (name: string): name is ChatCommandName => Object.hasOwn(CHAT_COMMANDS, name)

/** A command as the menu of a platform shows it. */
export interface OfferedCommand {
  /** Without `/`: 1 to 32 characters of a-z. */
  readonly name: string
  readonly description: string
  /** Whether words may follow it. */
  readonly takesWords?: true
}
