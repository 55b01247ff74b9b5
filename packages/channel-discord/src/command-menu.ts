/** The commands of the bot in the menu of Discord: https://docs.discord.com/developers/interactions/application-commands */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, CHAT_COMMANDS, type OfferedCommand } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import { isSnowflake } from './snowflake.ts'

const CHAT_INPUT = 1
const STRING_OPTION = 3
const DESCRIPTION_CHARS_MAX = 100
const ANSWER_BYTES_MAX = 2 * 1_048_576

/** The name of the option that takes the words after a command. */
export const WORDS_OPTION = 'words'

/** Replaces the commands of Sluice; none removes them. Other commands of the app stay. Throws as `callDiscord` does. */
export async function offerCommands(api: DiscordApi, commands: readonly OfferedCommand[], signal: AbortSignal): Promise<void> {
  const { id } = members((await callDiscord(api, { method: 'GET', path: '/applications/@me', signal })).json)
  if (!isSnowflake(id)) throw new AppError('upstream', 'discord did not return the application of the bot')
  const path = `/applications/${id}/commands`
  const read = { method: 'GET', path: `${path}?with_localizations=true`, signal, answerBytesMax: ANSWER_BYTES_MAX }
  const existing = list((await callDiscord(api, read)).json).map(members)
  const shown = commands.map(shownAs)
  const before = existing.filter(isOurs)
  if (JSON.stringify(before.map(partsOf)) === JSON.stringify(shown.map(partsOf))) return
  await callDiscord(api, { method: 'PUT', path, body: [...existing.filter((command) => !isOurs(command)), ...shown], signal })
}

const isOurs = ({ type = CHAT_INPUT, name }: Members): boolean => type === CHAT_INPUT && Object.hasOwn(CHAT_COMMANDS, text(name))

const partsOf = ({ name, description, options }: Members): unknown[] => [name, description, list(options).length]

function shownAs({ name, description, takesWords }: OfferedCommand): Members {
  const words = description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed()
  const option = { type: STRING_OPTION, name: WORDS_OPTION, description: words, required: false }
  return { type: CHAT_INPUT, name, description: words, ...(takesWords && { options: [option] }) }
}
