import { describe, expect, it } from 'vitest'
import { UnconfirmedAcks } from './unconfirmed-acks.ts'

describe('UnconfirmedAcks', () => {
  it('confirms the acknowledgements sent before the answered ping', () => {
    const acks = new UnconfirmedAcks()
    acks.acknowledged(1)
    acks.acknowledged(2)
    acks.pingSent()
    acks.acknowledged(3)
    expect(acks.pingAnswered()).toEqual([1, 2])
    acks.pingSent()
    expect(acks.pingAnswered()).toEqual([3])
  })

  it('matches two pending pings with their answers', () => {
    const acks = new UnconfirmedAcks()
    acks.acknowledged(1)
    acks.pingSent()
    acks.acknowledged(2)
    acks.pingSent()
    expect(acks.pingAnswered()).toEqual([1])
    expect(acks.pingAnswered()).toEqual([2])
  })

  it('does not confirm a repeated acknowledgement by an earlier ping', () => {
    const acks = new UnconfirmedAcks()
    acks.acknowledged(1)
    acks.pingSent()
    acks.acknowledged(1)
    expect(acks.pingAnswered()).toEqual([])
  })

  it('asks for a ping when one would confirm something and none is pending', () => {
    const acks = new UnconfirmedAcks()
    expect(acks.shouldPing).toBe(false)
    acks.acknowledged(1)
    expect(acks.shouldPing).toBe(true)
    acks.pingSent()
    acks.acknowledged(2)
    expect(acks.shouldPing).toBe(false)
    acks.pingAnswered()
    expect(acks.shouldPing).toBe(true)
  })
})
