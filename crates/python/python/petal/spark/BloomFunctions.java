package petal.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Registers two internal functions of Spark's SQL: {@code might_contain(filter, hash)} and
 * {@code bloom_filter_agg(hash, keys, bits)}. Both accept only {@code bigint}s: pass
 * {@code xxhash64(column)}.
 */
public final class BloomFunctions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        add(extensions, "might_contain", BloomFilterMightContain.class, 2,
            of -> new BloomFilterMightContain(of.apply(0), of.apply(1)));
        add(extensions, "bloom_filter_agg", BloomFilterAggregate.class, 3,
            of -> new BloomFilterAggregate(of.apply(0), of.apply(1), of.apply(2)));
        return BoxedUnit.UNIT;
    }

    private static void add(SparkSessionExtensions extensions, String name, Class<?> expression,
            int arguments, Function1<Seq<Expression>, Expression> make) {
        Function1<Seq<Expression>, Expression> checked = of -> {
            if (of.size() != arguments) {
                throw new IllegalArgumentException(
                    name + ": expected " + arguments + " arguments, found " + of.size());
            }
            return make.apply(of);
        };
        extensions.injectFunction(new Tuple3<>(
            new FunctionIdentifier(name, Option.empty()),
            new ExpressionInfo(expression.getName(), name), checked));
    }
}
