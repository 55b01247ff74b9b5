/** The menu of the bot's commands: https://core.telegram.org/bots/api#setmycommands */
import type { OfferedCommand } from '@sluice/sdk'
import type { BotApi } from './api.ts'

const DESCRIPTION_CHARS_MAX = 256

/** Replaces the commands for all chats and languages; none deletes them. Throws as `BotApi.call` does. */
export async function offerCommands(api: BotApi, commands: readonly OfferedCommand[], signal: AbortSignal): Promise<void> {
  if (commands.length === 0) {
    await api.call('deleteMyCommands', {}, { signal })
    return
  }
  const shown = commands.map(({ name, description }) => ({
    command: name,
    description: description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed(),
  }))
  await api.call('setMyCommands', { commands: shown }, { signal })
}
