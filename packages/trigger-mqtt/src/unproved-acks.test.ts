import { describe, expect, it } from 'vitest'
import { UnprovedAcks } from './unproved-acks.ts'

describe('acknowledgements without proof', () => {
  it('the answer to a ping proves what was acknowledged before that ping, and nothing later', () => {
    const acks = new UnprovedAcks()
    acks.acknowledged(1)
    acks.acknowledged(2)
    acks.pingSent()
    acks.acknowledged(3)
    expect(acks.pingAnswered()).toEqual([1, 2])
    acks.pingSent()
    expect(acks.pingAnswered()).toEqual([3])
  })

  it('of two pings under way each has its own answer', () => {
    const acks = new UnprovedAcks()
    acks.acknowledged(1)
    acks.pingSent()
    acks.acknowledged(2)
    acks.pingSent()
    expect(acks.pingAnswered()).toEqual([1])
    expect(acks.pingAnswered()).toEqual([2])
  })

  it('a packet id that is acknowledged again is not proved by a ping from before', () => {
    const acks = new UnprovedAcks()
    acks.acknowledged(1)
    acks.pingSent()
    acks.acknowledged(1)
    expect(acks.pingAnswered()).toEqual([])
  })

  it('a ping is worth sending when it proves something and none is under way', () => {
    const acks = new UnprovedAcks()
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
