import { describe, expect, test } from 'vitest'
import { tracesUrl } from './config.ts'

describe('tracesUrl', () => {
  test.each([
    ['http://localhost:4318', 'http://localhost:4318/v1/traces'],
    ['http://localhost:4318/', 'http://localhost:4318/v1/traces'],
    ['https://collector.example/otlp/', 'https://collector.example/otlp/v1/traces'],
    ['https://collector.example/v1/traces', 'https://collector.example/v1/traces'],
    ['https://collector.example/a?tenant=b', 'https://collector.example/a/v1/traces?tenant=b'],
  ])('turns %s into %s', (endpoint, url) => {
    expect(tracesUrl(endpoint)).toBe(url)
  })
})
