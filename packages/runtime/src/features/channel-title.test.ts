import { expect, test } from 'vitest'
import { channelTitle, featureOfChannel } from './channel-title.ts'
import type { FeatureStatus } from './feature-status.ts'

const status = (feature: string, state: FeatureStatus['state']) => ({ feature, state }) as FeatureStatus

test.each([
  ['telegram', 'Telegram'],
  ['voice_call', 'Voice calls'],
  ['workchat', 'Lark and Feishu'],
  ['workchat_cn', 'Lark and Feishu (workchat_cn)'],
  ['zulip', 'zulip'],
])('the channel %s has the name %s', (channel, title) => {
  expect(channelTitle(channel, [status('channel-workchat', 'ready'), status('channel-voice-call', 'ready')])).toBe(title)
})

test('of two features with one section, the ready one gives the name', () => {
  const [cloud, web] = [status('channel-chatapp', 'unconfigured'), status('channel-chatapp-web', 'ready')]
  expect(featureOfChannel('chatapp', [cloud, web])).toBe('channel-chatapp-web')
  expect(channelTitle('chatapp', [cloud, web])).toBe('WhatsApp, as a linked device of a phone (chatapp)')
  expect(channelTitle('chatapp', [cloud])).toBe('WhatsApp, by the Business Cloud API')
})
