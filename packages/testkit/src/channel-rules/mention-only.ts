/**
 * The rule for channels that can have only messages to the bot answered, by `mention_only` or by `group_policy = "mention"`: the other
 * messages arrive, so that their room can overhear them.
 */
import { AppError, type Inbound, overheardPart } from '@sluice/sdk'
import * as v from 'valibot'
import { expect } from 'vitest'
import type { ChannelSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'
import { createBench } from './bench.ts'
import { listened } from './listened.ts'
import { createWebhookBench } from './webhook-bench.ts'

export function mentionOnlyRules(subject: ChannelSubject): Rules {
  const { listen, webhook } = subject
  const only = onlyMentions(subject)
  if (!only) return {}
  const bench = createBench({ ...subject, config: { ...subject.config, ...only } })
  const expectMarked = (arrived: readonly Inbound[], golden: readonly Inbound[]): void => {
    // Edits of any message arrive, because the daemon knows which it has. It writes down no edit of a message that it drops.
    expect(arrived).toEqual(golden.map((message) => ({ ...message, ...overheardPart(message, true) })))
    expect(
      arrived.filter(({ overheardOnly }) => overheardOnly),
      'messages that are not to the bot',
    ).not.toEqual([])
  }
  return {
    'where only messages to the bot are answered, another message arrives as `overheardOnly`': async () => {
      if (listen) expectMarked((await listened(bench, listen, { enough: listen.expect.length })).delivered, listen.expect)
      if (!webhook) return
      const { parse } = createWebhookBench(bench, webhook)
      const [arrived, golden]: [Inbound[], Inbound[]] = [[], []]
      for (const fixture of webhook.fixtures) {
        // A channel that cannot tell yet who the bot is has the platform send the message again.
        const messages = await parse(fixture).catch((error: unknown) => {
          if (error instanceof AppError && error.code === 'unavailable') return undefined
          throw error
        })
        if (!messages) continue
        arrived.push(...messages)
        golden.push(...fixture.expect)
      }
      expectMarked(arrived, golden)
    },
  }
}

/** Returns the values with which the channel has only messages to the bot answered. */
function onlyMentions({ feature, config }: ChannelSubject): object | undefined {
  const schema = feature.section?.schema
  const { entries = {} } = (schema ?? {}) as { readonly entries?: object }
  if ('mention_only' in entries) return { mention_only: true }
  const only = { group_policy: 'mention' }
  return schema && 'group_policy' in entries && v.safeParse(schema, { ...config, ...only }).success ? only : undefined
}
