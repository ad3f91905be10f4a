package petal;

import java.io.IOException;

/** Thrown for bytes that are not a filter that can be queried. The message says where, what, and what to do. */
public final class PetalException extends IOException {
    private static final long serialVersionUID = 1;

    /** What is wrong. */
    public enum Kind {
        /** The bytes are no petal file. */
        FOREIGN,
        /** The version of the format or the type of the filter is one that this reader does not query. */
        UNSUPPORTED,
        /** The bytes are no filter: a part is missing, has changed, or contradicts another one. */
        DAMAGED,
        /** The secret of the filter's hash is missing or wrong. */
        SECRET
    }

    private final Kind kind;
    private final long offset;
    private final String problem;
    private final String advice;

    private PetalException(Kind kind, long offset, String where, String problem, String advice) {
        super(where + problem + "; " + advice);
        this.kind = kind;
        this.offset = offset;
        this.problem = problem;
        this.advice = advice;
    }

    static PetalException foreign() {
        String problem = "not a petal file: it does not begin with 89 50 45 54 41 4c 0d 0a";
        return new PetalException(Kind.FOREIGN, 0, "", problem, "give a filter file of petal");
    }

    static PetalException unsupported(long offset, String problem, String advice) {
        return new PetalException(Kind.UNSUPPORTED, offset, "", problem, advice);
    }

    static PetalException damaged(String field, long offset, Object expected, Object found) {
        String problem = "damaged: " + field + " at byte " + offset + ": expected " + expected + ", found " + found;
        return new PetalException(Kind.DAMAGED, offset, "", problem, "fetch or build the file again");
    }

    static PetalException length(long expected, long found) {
        String problem = "damaged: " + Long.toUnsignedString(expected) + " bytes expected, " + found + " found";
        return new PetalException(Kind.DAMAGED, -1, "", problem, "fetch or build the file again");
    }

    static PetalException secret(String problem, String advice) {
        return new PetalException(Kind.SECRET, -1, "", problem, advice);
    }

    /** Returns this exception with the name of the file. */
    PetalException in(Object file) {
        PetalException named = new PetalException(kind, offset, file + ": ", problem, advice);
        named.setStackTrace(getStackTrace());
        return named;
    }

    /** Returns what is wrong. */
    public Kind kind() {
        return kind;
    }

    /** Returns where it is wrong, in bytes from the beginning of the file; -1 if it is not at one place. */
    public long offset() {
        return offset;
    }

    /** Returns what to do, in the imperative. */
    public String advice() {
        return advice;
    }
}
