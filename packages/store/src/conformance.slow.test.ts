/** Lists of a large file are read in a thread of their own. Here every file counts as large. */
import { storeConformance } from '@sluice/testkit/store'
import { sqliteSubject } from './testing/sqlite-subject.ts'

storeConformance(sqliteSubject('SQLite, large', 0))
