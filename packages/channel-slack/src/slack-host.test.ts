import { expect, test } from 'vitest'
import { isSlackUrl } from './slack-host.ts'

const API = 'https://slack.com/api/'

test.each([
  'wss://wss-primary.slack.com/link/?ticket=1',
  'wss://wss-primary.slack-gov.com/link/?ticket=1',
  'https://files.slack.com/files-pri/T1-F1/a.png',
  'https://files.slack-gov.com/upload/v1/x',
  'https://slack-gov.com/api/',
])('%s is an address of Slack', (address) => {
  expect(isSlackUrl(address, API)).toBe(true)
  expect(isSlackUrl(address, 'https://slack-gov.com/api/')).toBe(true)
})

test.each([
  'ws://wss-primary.slack-gov.com/',
  'wss://wss-primary.slack-gov.com.evil.example/',
  'wss://evilslack-gov.com/',
  'wss://user:pass@wss-primary.slack-gov.com/',
  'wss://wss-primary.slack-gov.com:8443/',
])('%s is none', (address) => {
  expect(isSlackUrl(address, API)).toBe(false)
})
