/** Keeps the names of the roles and channels of each server, and the roles of the bot, from the events of the gateway. */
import { BoundedMap, signalScope } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Clock } from '@sluice/sdk'
import { isSnowflake } from './snowflake.ts'

export interface Guilds {
  /** The name of a role or a channel; undefined if it is not known. */
  nameOf(guild: string, id: string): string | undefined
  /** True for a role of the bot, its managed role included; false for `@everyone`. */
  isOwnRole(guild: string, role: string): boolean
  /** Names the servers of a new session. The platform sends a `GUILD_CREATE` for each of them within some seconds. */
  expect(guilds: readonly unknown[]): void
  /** Handles the gateway events of servers, roles and channels, and ignores all others. */
  dispatch(type: string, event: Members): void
  /** Resolves once the event of every expected server has arrived, or after five seconds. */
  settled(signal: AbortSignal): Promise<void>
}

interface Guild {
  readonly names: BoundedMap<string, string>
  ownRoles: ReadonlySet<string>
}

/** The platform allows one connection no more servers than this. */
const GUILDS_MAX = 2500
/** A server has at most 250 roles and 500 channels. */
const NAMES_MAX = 1000
const SETTLE_MS = 5000

export function createGuilds({ own, clock }: { own(): string; readonly clock: Pick<Clock, 'sleep'> }): Guilds {
  const guilds = new BoundedMap<string, Guild>(GUILDS_MAX)
  const missing = new Set<string>()
  let all = Promise.withResolvers<void>()
  all.resolve()

  const arrived = (id: string): void => {
    missing.delete(id)
    if (missing.size === 0) all.resolve()
  }
  const name = (guild: Guild | undefined, entries: unknown): void => {
    for (const { id, name } of list(entries).map(members)) if (isSnowflake(id) && text(name) !== '') guild?.names.set(id, text(name))
  }
  const create = (event: Members, id: string): void => {
    const guild: Guild = { names: new BoundedMap(NAMES_MAX), ownRoles: new Set() }
    for (const entries of [event.roles, event.channels, event.threads]) name(guild, entries)
    const managed = list(event.roles)
      .map(members)
      .filter(({ tags }) => members(tags).bot_id === own())
    const member = list(event.members)
      .map(members)
      .find(({ user }) => members(user).id === own())
    guild.ownRoles = new Set([...managed.map((role) => text(role.id)), ...list(member?.roles).map(text)])
    guilds.set(id, guild)
  }

  return {
    nameOf: (guild, id) => guilds.get(guild)?.names.get(id),
    isOwnRole: (guild, role) => role !== guild && guilds.get(guild)?.ownRoles.has(role) === true,
    expect(expected) {
      missing.clear()
      for (const { id } of expected.map(members)) if (isSnowflake(id)) missing.add(id)
      all = Promise.withResolvers()
      if (missing.size === 0) all.resolve()
    },
    dispatch(type, event) {
      const id = text(type === 'GUILD_CREATE' || type === 'GUILD_DELETE' ? event.id : event.guild_id)
      if (id === '') return
      if (type === 'GUILD_CREATE') create(event, id)
      if (type === 'GUILD_CREATE' || type === 'GUILD_DELETE') return arrived(id)
      const guild = guilds.get(id)
      if (type === 'GUILD_ROLE_CREATE' || type === 'GUILD_ROLE_UPDATE') name(guild, [event.role])
      else if (/^(?:CHANNEL|THREAD)_(?:CREATE|UPDATE)$/.test(type)) name(guild, [event])
      else if (guild && type === 'GUILD_MEMBER_UPDATE' && members(event.user).id === own())
        guild.ownRoles = new Set(list(event.roles).map(text))
    },
    async settled(signal) {
      if (missing.size === 0) return
      const over = new AbortController()
      using either = signalScope([signal, over.signal])
      await Promise.race([all.promise, clock.sleep(SETTLE_MS, either.signal)])
      over.abort()
    },
  }
}
