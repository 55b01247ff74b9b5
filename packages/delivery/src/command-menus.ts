/** Keeps the menus of commands on platforms that have one: the commands in the words of now, and none once the channel has gone. */
import { retry, signalScope } from '@sluice/kit'
import type { Channel, Clock, GatewayTexts, Logger, OfferedCommand } from '@sluice/sdk'
import { commandsFor } from './inbox/commands.ts'

export interface CommandMenusOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Aborts when the daemon stops. The menus then stay as they are. */
  readonly stopping: AbortSignal
}

interface Menu {
  readonly channel: Channel
  /** The commands as JSON. */
  readonly shown: string
  /** Ends the retries of an earlier change. */
  readonly replaced: AbortController
}

/** A menu that cannot be written for this long is left to the next start. */
const ATTEMPTS_MAX = 12

export class CommandMenus {
  readonly #options: CommandMenusOptions
  /** The menus by the name of their channel. */
  readonly #menus = new Map<string, Menu>()

  constructor(options: CommandMenusOptions) {
    this.#options = options
  }

  /** Brings the menus up to date with the channels that are ready, and with the texts in force. */
  set(channels: readonly Channel[], texts: GatewayTexts): void {
    // All people see the same menu, so it lists the commands that a known person may use.
    const commands = commandsFor('listed', texts)
    const shown = JSON.stringify(commands)
    const ready = new Map(channels.flatMap((channel) => (channel.offerCommands ? [[channel.name, channel] as const] : [])))
    for (const [name, { channel }] of this.#menus) if (!ready.has(name)) this.#write(channel, [])
    for (const [name, channel] of ready) {
      const before = this.#menus.get(name)
      if (before?.channel !== channel || before.shown !== shown) this.#write(channel, commands)
    }
  }

  #write(channel: Channel, commands: readonly OfferedCommand[]): void {
    const { clock, log, stopping } = this.#options
    this.#menus.get(channel.name)?.replaced.abort()
    const replaced = new AbortController()
    if (commands.length === 0) this.#menus.delete(channel.name)
    else this.#menus.set(channel.name, { channel, shown: JSON.stringify(commands), replaced })
    const write = async (): Promise<void> => {
      using scope = signalScope([stopping, replaced.signal])
      const { signal } = scope
      await retry(async () => channel.offerCommands?.(commands, signal), {
        clock,
        signal,
        onFailure(error, failures) {
          if (failures === 1) log.warn('the menu of commands could not be written', { channel: channel.name, error })
          if (failures >= ATTEMPTS_MAX) throw error
        },
      })
    }
    write().catch((error: unknown) => log.debug('the menu of commands is not written', { channel: channel.name, error }))
  }
}
