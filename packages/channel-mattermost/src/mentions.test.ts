import { expect, test } from 'vitest'
import { isMentioned, withoutMention, withoutNotifications } from './mentions.ts'

const MAX = 16_383

test.each([
  ['@sluice hi', true],
  ['hi @SLUICE', true],
  ['(@sluice)', true],
  ['ask @sluice.', true],
  ['@sluice-bot hi', false],
  ['@sluice2 hi', false],
  ['me@sluice', false],
  ['sluice', false],
  ['', false],
])('%j mentions the bot: %s', (text, expected) => {
  expect(isMentioned(text, 'sluice')).toBe(expected)
})

test.each([
  ['@sluice hi', 'hi'],
  ['@sluice: hi', 'hi'],
  ['@sluice, @sluice hi', 'hi'],
  ['hey @sluice what', 'hey what'],
  ['ask @sluice.', 'ask .'],
  ['@sluice-bot hi', '@sluice-bot hi'],
  ['@sluice', ''],
])('the mention is removed from %j', (text, expected) => {
  expect(withoutMention(text, 'sluice')).toBe(expected)
})

test.each([
  ['@all', '@\u200ball'],
  ['a @here.b', 'a @\u200bhere.b'],
  ['ada@example.org', 'ada@example.org'],
  ['```\n@all @Override\n```\n@ada', '```\n@\u200ball @Override\n```\n@\u200bada'],
  ['~~~\n```\n~~~\n@ada', '~~~\n```\n~~~\n@\u200bada'],
  ['````\n```\n@media\n````\n@ada', '````\n```\n@media\n````\n@\u200bada'],
  ['``` @ada ```', '``` @\u200bada ```'],
  ['2 @ 3', '2 @ 3'],
])('%j notifies no one', (text, expected) => {
  expect(withoutNotifications(text, MAX)).toBe(expected)
})
