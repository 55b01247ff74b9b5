/** The rules of the store. `conformance.slow.test.ts` has them for files whose lists are read in a thread of their own. */
import { storeConformance } from '@sluice/testkit/store'
import { sqliteSubject } from './testing/sqlite-subject.ts'

storeConformance(sqliteSubject('SQLite'))
