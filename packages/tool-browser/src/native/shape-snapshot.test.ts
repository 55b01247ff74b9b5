import { describe, expect, test } from 'vitest'
import { shapeSnapshot } from './shape-snapshot.ts'

const SNAPSHOT = `- generic [active] [ref=e1]:
  - heading "Hello" [level=1] [ref=e2]
  - generic [ref=e3]:
    - generic [ref=e4]:
      - link "On" [ref=e5] [cursor=pointer]:
        - /url: /next
      - text: words
    - button "Go" [disabled] [ref=e6]
  - generic "named" [ref=e7]:
    - paragraph [ref=e8]: generic [ref=e1]:
  - iframe [ref=e9]:
    - textbox "Name" [ref=f1e2]: Ada
  - generic [ref=e10] [cursor=pointer]: Buy`

describe('shapeSnapshot', () => {
  test('interactive_only lists interactive elements and the targets of links', () => {
    expect(shapeSnapshot(SNAPSHOT, { interactive_only: true, compact: true }).split('\n')).toEqual([
      '- link "On" [@e5] [cursor=pointer] -> /next',
      '- button "Go" [disabled] [@e6]',
      '- iframe [@e9]',
      '- textbox "Name" [@f1e2]: Ada',
      '- generic [@e10] [cursor=pointer]: Buy',
    ])
  })

  test('compact leaves out containers and moves their children up', () => {
    expect(shapeSnapshot(SNAPSHOT, { interactive_only: false, compact: true }).split('\n')).toEqual([
      '- heading "Hello" [level=1] [@e2]',
      '- link "On" [@e5] [cursor=pointer]:',
      '  - /url: /next',
      '- text: words',
      '- button "Go" [disabled] [@e6]',
      '- generic "named" [@e7]:',
      '  - paragraph [@e8]: generic [@e1]:',
      '- iframe [@e9]:',
      '  - textbox "Name" [@f1e2]: Ada',
      '- generic [@e10] [cursor=pointer]: Buy',
    ])
  })

  test('without both options, only the refs change', () => {
    expect(shapeSnapshot(SNAPSHOT, { interactive_only: false, compact: false })).toBe(SNAPSHOT.replace(/ref=/g, '@'))
  })
})
