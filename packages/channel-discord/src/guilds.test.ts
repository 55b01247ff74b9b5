import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { Guilds } from './guilds.ts'

const arrange = () => {
  const clock = testClock(0)
  return { clock, guilds: new Guilds('99', clock) }
}
const never = new AbortController().signal

describe('Guilds', () => {
  test('follows the events of the gateway', () => {
    const { guilds } = arrange()
    guilds.dispatch('GUILD_CREATE', { id: '3', roles: [{ id: '500', name: 'ops' }], channels: [{ id: '600', name: 'alerts' }] })
    guilds.dispatch('GUILD_ROLE_UPDATE', { guild_id: '3', role: { id: '500', name: 'on call' } })
    guilds.dispatch('CHANNEL_UPDATE', { guild_id: '3', id: '600', name: 'alarms' })
    guilds.dispatch('GUILD_MEMBER_UPDATE', { guild_id: '3', user: { id: '99' }, roles: ['500'] })
    guilds.dispatch('GUILD_MEMBER_UPDATE', { guild_id: '3', user: { id: '98' }, roles: [] })
    expect([guilds.nameOf('3', '500'), guilds.nameOf('3', '600'), guilds.nameOf('4', '500')]).toEqual(['on call', 'alarms', undefined])
    expect([guilds.isOwnRole('3', '500'), guilds.isOwnRole('4', '500')]).toEqual([true, false])
  })

  test('settles once the event of each server has arrived', async () => {
    const { guilds } = arrange()
    await guilds.settled(never)
    guilds.begin('99', [
      { id: '3', unavailable: true },
      { id: '4', unavailable: true },
    ])
    let isSettled = false
    const settled = guilds.settled(never).then(() => {
      isSettled = true
    })
    guilds.dispatch('GUILD_CREATE', { id: '3' })
    await Promise.resolve()
    expect(isSettled).toBe(false)
    guilds.dispatch('GUILD_DELETE', { id: '4', unavailable: true })
    await settled
  })

  test('settles after five seconds at the latest', async () => {
    const { guilds, clock } = arrange()
    guilds.begin('99', [{ id: '3' }])
    const settled = guilds.settled(never)
    await clock.advance(5000)
    await settled
  })

  test('does not throw for malformed events', () => {
    const { guilds } = arrange()
    for (const event of [{ id: '3', roles: 7, channels: [null], members: [{}] }, { id: 7 }, { guild_id: '3', role: null }]) {
      for (const type of ['GUILD_CREATE', 'GUILD_ROLE_CREATE', 'CHANNEL_CREATE', 'GUILD_MEMBER_UPDATE', 'GUILD_DELETE'])
        guilds.dispatch(type, event)
    }
    expect(guilds.nameOf('3', '500')).toBeUndefined()
  })
})
