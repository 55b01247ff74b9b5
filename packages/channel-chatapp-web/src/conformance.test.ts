import { channelConformance } from '@sluice/testkit/channel'
import { ABILITIES } from './abilities.ts'
import { subject } from './testing/subject.ts'

/** Each takes half a minute, because hundreds of connections are real ones. */
const SLOW = [
  'a platform that breaks each connection at once for an hour is asked at most 40 times',
  'a platform that breaks each connection after 5 s for an hour is asked at most 40 times',
]

channelConformance({
  ...(await subject()),
  names: ABILITIES.names,
  except: SLOW.map((rule) => ({ rule, why: 'conformance.slow.test.ts has this rule' })),
})
