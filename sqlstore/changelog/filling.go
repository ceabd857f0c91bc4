package changelog

import "context"

// Filling fills an empty log, and stops one whose objects have moved. Marks are what is noted about both.
type Filling interface {
	// Fill lets fill write to the log, which must be empty, in one transaction: if fill or anything
	// else fails, nothing of it is there. A log that has rows, or a floor, gets ErrNotEmpty.
	Fill(ctx context.Context, fill func(Filler) error) error

	// Move stops the log for good, because its objects have moved: it takes the write lock and
	// notes where they are. From its commit on every Append of every process fails with the ErrMoved
	// that Moved makes of to, which has 255 bytes at most. It returns the head, which stays as it is.
	// ErrMoved if it has moved elsewhere already. An empty to takes the log back.
	Move(ctx context.Context, to string) (head int64, err error)

	// Marks returns the marks of the log: what SetMarks has written and not removed.
	Marks(ctx context.Context) (map[string]string, error)

	// SetMarks writes marks in one transaction; an empty value removes one. Names have at
	// most 59 bytes and values 255.
	SetMarks(ctx context.Context, marks map[string]string) error
}

// Filler writes to an empty log what was read from another one.
type Filler interface {
	// Add adds authors, and returns their numbers.
	Add(ctx context.Context, authors []Author) (numbers []int64, err error)

	// Insert adds rows as they are. Ids rise, also from call to call.
	Insert(ctx context.Context, rows []Row) error

	// InsertOld adds old versions beside the log. Ids rise, also from call to call.
	InsertOld(ctx context.Context, rows []OldRow) error

	// End notes the compacted revision, how far compaction has looked, and what is kept.
	End(ctx context.Context, e Ending) error
}

// Ending is what a Filler says of the log at last.
type Ending struct {
	Floor, Swept int64            // see MetaFloor and MetaSwept
	Kept         map[string]int64 // see Frozen.Kept
	Marks        map[string]string
}
