/** Keeps the names of the roles and channels of each server, and the roles of the bot, from the events of the gateway. */
import { BoundedMap, endsWithin } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Clock } from '@sluice/sdk'
import type { Names } from './message-text.ts'
import { isSnowflake } from './snowflake.ts'

interface Guild {
  readonly names: BoundedMap<string, string>
  ownRoles: ReadonlySet<string>
}

/** The platform allows one connection no more servers than this. */
const GUILDS_MAX = 2500
/** A server has at most 250 roles and 500 channels. */
const NAMES_MAX = 1000
const SETTLE_MS = 5000

export class Guilds implements Names {
  readonly #clock: Clock
  readonly #guilds = new BoundedMap<string, Guild>(GUILDS_MAX)
  /** Servers of the session whose first event has not arrived. */
  readonly #missing = new Set<string>()
  #allArrived = resolvedNow()
  #botId: string

  constructor(botId: string, clock: Clock) {
    this.#botId = botId
    this.#clock = clock
  }

  get botId(): string {
    return this.#botId
  }

  nameOf(guild: string, id: string): string | undefined {
    return this.#guilds.get(guild)?.names.get(id)
  }

  isOwnRole(guild: string, role: string): boolean {
    return role !== guild && this.#guilds.get(guild)?.ownRoles.has(role) === true
  }

  /** Starts a session of the bot on these servers. The platform sends a `GUILD_CREATE` for each of them within some seconds. */
  begin(botId: string, servers: readonly unknown[]): void {
    this.#botId = botId
    this.#missing.clear()
    for (const { id } of servers.map(members)) if (isSnowflake(id)) this.#missing.add(id)
    this.#allArrived = this.#missing.size === 0 ? resolvedNow() : Promise.withResolvers<void>()
  }

  /** Handles the gateway events of servers, roles and channels, and ignores all others. */
  dispatch(type: string, event: Members): void {
    if (type === 'GUILD_CREATE' || type === 'GUILD_DELETE') {
      const id = text(event.id)
      if (id === '') return
      if (type === 'GUILD_CREATE') this.#guilds.set(id, guildOf(event, this.#botId))
      this.#arrived(id)
      return
    }
    const guild = this.#guilds.get(text(event.guild_id))
    if (!guild) return
    if (type === 'GUILD_ROLE_CREATE' || type === 'GUILD_ROLE_UPDATE') addNames(guild, [event.role])
    else if (/^(?:CHANNEL|THREAD)_(?:CREATE|UPDATE)$/.test(type)) addNames(guild, [event])
    else if (type === 'GUILD_MEMBER_UPDATE' && members(event.user).id === this.#botId) guild.ownRoles = new Set(list(event.roles).map(text))
  }

  /** Resolves once the event of every server of the session has arrived, or after five seconds. */
  async settled(signal: AbortSignal): Promise<void> {
    if (this.#missing.size === 0) return
    await endsWithin(this.#allArrived.promise, SETTLE_MS, this.#clock, signal)
  }

  #arrived(id: string): void {
    this.#missing.delete(id)
    if (this.#missing.size === 0) this.#allArrived.resolve()
  }
}

function guildOf(event: Members, botId: string): Guild {
  const managedRoles = list(event.roles)
    .map(members)
    .filter(({ tags }) => members(tags).bot_id === botId)
  const bot = list(event.members)
    .map(members)
    .find(({ user }) => members(user).id === botId)
  const ownRoles = new Set([...managedRoles.map((role) => text(role.id)), ...list(bot?.roles).map(text)])
  const guild: Guild = { names: new BoundedMap(NAMES_MAX), ownRoles }
  for (const entries of [event.roles, event.channels, event.threads]) addNames(guild, entries)
  return guild
}

function addNames(guild: Guild, entries: unknown): void {
  for (const { id, name } of list(entries).map(members)) {
    if (isSnowflake(id) && text(name) !== '') guild.names.set(id, text(name))
  }
}

function resolvedNow(): PromiseWithResolvers<void> {
  const settled = Promise.withResolvers<void>()
  settled.resolve()
  return settled
}
